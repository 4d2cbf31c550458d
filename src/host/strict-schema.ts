import { z } from 'zod';
import type { JsonSchema, StandardSchemaV1 } from '../resource/index.ts';

/** An object in which every key must be known; an unknown one is told with the nearest known name. */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? (issue.keys ?? []).map((key) => unknownField(key, known)).join('\n') : undefined,
  });
}

/** Says that a name is unknown, which ones are known, and which of them was probably meant. */
export function unknownField(name: string, known: readonly string[]): string {
  return `unknown field${suggestion(name, known)}; known are ${known.join(', ')}`;
}

/** `: did you mean x?`, when a known name is near. */
export function suggestion(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}

/** The known name that takes the fewest edits, if they are few for its length. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

/** Insertions, removals, replacements and swaps of neighbours. */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      let cost = Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, (row[j - 1] as number) + (same ? 0 : 1));
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1])
        cost = Math.min(cost, (before[j - 2] as number) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[right.length] as number;
}

/** A zod schema as a Standard Schema whose issues name the field itself, unknown ones too. */
export function readable<Schema extends z.ZodType>(schema: Schema): StandardSchemaV1<z.input<Schema>, z.output<Schema>> {
  return {
    '~standard': {
      version: 1,
      vendor: 'zod',
      validate(value) {
        const result = schema.safeParse(value);
        return result.success ? { value: result.data } : { issues: result.error.issues.flatMap(readableIssues) };
      },
    },
  };
}

/** The JSON Schema of what people write. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
}

function readableIssues(issue: z.core.$ZodIssue): readonly StandardSchemaV1.Issue[] {
  if (issue.code === 'unrecognized_keys') {
    const messages = issue.message.split('\n');
    return issue.keys.map((key, index) => ({ path: [...issue.path, key], message: messages[index] ?? 'unknown field' }));
  }
  if (issue.code === 'invalid_key') return [{ path: issue.path, message: issue.issues.map((inner) => inner.message).join('; ') }];
  return [{ path: issue.path, message: issue.message.replace(/^Invalid input: /, '').replace(/, received /, ', found ') }];
}
