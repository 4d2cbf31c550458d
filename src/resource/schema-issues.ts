import type { InvalidIssue } from './errors.ts';
import type { StandardSchemaV1 } from './standard-schema.ts';
import { appendPath } from './values.ts';

/** What zod hangs below an issue: why each form of a union did not fit, or what is wrong with the key of a record. */
interface NestingIssue extends StandardSchemaV1.Issue {
  readonly errors?: unknown;
  readonly issues?: unknown;
}

/** The issues of a schema, each with its path and a reason that says more than that nothing fitted. */
export function schemaIssues(issues: readonly StandardSchemaV1.Issue[], root: string): readonly InvalidIssue[] {
  return issues.flatMap((issue) => readIssue(issue, root));
}

function readIssue(issue: NestingIssue, root: string): readonly InvalidIssue[] {
  const path = pathText(issue, root);
  if (Array.isArray(issue.issues)) {
    const inner = schemaIssues(issue.issues as readonly StandardSchemaV1.Issue[], '');
    return [{ path, message: [issue.message, inner.map(reason).join('; ')].filter((text) => text !== '').join(': ') }];
  }
  const forms = Array.isArray(issue.errors) ? (issue.errors as readonly (readonly StandardSchemaV1.Issue[])[]) : [];
  if (forms.length === 0 || !forms.every(Array.isArray)) return [{ path, message: issue.message }];
  // The form that a value has is the one that it fits furthest.
  const depth = Math.max(...forms.map(fits));
  const nearest = depth === 0 ? forms : forms.filter((form) => fits(form) === depth);
  if (nearest.length === 1) return schemaIssues(nearest[0] as readonly StandardSchemaV1.Issue[], path);
  const reasons = nearest.map((form) => schemaIssues(form, '').map(reason).join(', '));
  return [{ path, message: [...new Set(reasons)].join('; or ') }];
}

/** How deep a value fits a form before the first thing that does not. */
function fits(form: readonly StandardSchemaV1.Issue[]): number {
  return Math.min(...form.map((issue) => issue.path?.length ?? 0));
}

function reason({ path, message }: InvalidIssue): string {
  return path === '' ? message : `${path}: ${message}`;
}

function pathText(issue: StandardSchemaV1.Issue, root: string): string {
  return (issue.path ?? []).reduce<string>((path, step) => {
    const key = typeof step === 'object' ? step.key : step;
    return appendPath(path, typeof key === 'symbol' ? key.toString() : key);
  }, root);
}
