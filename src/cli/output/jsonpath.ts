import { Bytes } from '../../resource/index.ts';
import { UsageError } from '../exit-codes.ts';
import { jsonText } from './json-text.ts';
import type { Action, Filter, Step } from './jsonpath-parse.ts';
import { parseTemplate } from './jsonpath-parse.ts';

/** kubectl's JSONPath templates: text, `{.path}`, `{range …}{end}`. A template without braces is one path. */
export function compileJsonPath(template: string): (value: unknown) => string {
  const actions = parseTemplate(template.includes('{') ? template : `{${template}}`);
  return (value) => runAll(actions, value, value);
}

/** The values at one path, in order; a path that leads nowhere gives none. */
export function compilePath(path: string): (value: unknown) => readonly unknown[] {
  const [action, ...rest] = parseTemplate(path.includes('{') ? path : `{${path}}`);
  if (action?.kind !== 'path' || rest.length > 0) throw new UsageError(`expected one JSONPath such as {.spec.name}, found ${path}`);
  return (value) => select(action.steps, value, value);
}

/** A value as a cell or as the text of a template. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return String(value);
  if (Bytes.is(value)) return value.toBase64();
  return jsonText(value, 0);
}

function runAll(actions: readonly Action[], root: unknown, current: unknown): string {
  return actions
    .map((action) => {
      if (action.kind === 'text') return action.text;
      const values = select(action.steps, root, current);
      if (action.kind === 'path') return values.map(valueText).join(' ');
      return values.map((value) => runAll(action.body, root, value)).join('');
    })
    .join('');
}

function select(steps: readonly Step[], root: unknown, current: unknown): readonly unknown[] {
  let values: readonly unknown[] = [current];
  for (const step of steps) {
    if (step.kind === 'root') values = [root];
    // All of the first, then all of the second.
    else if (step.kind === 'union') values = step.steps.flatMap((each) => values.flatMap((value) => take(each, value, root)));
    else values = values.flatMap((value) => take(step, value, root));
  }
  return values;
}

function take(step: Exclude<Step, { kind: 'root' }>, value: unknown, root: unknown): readonly unknown[] {
  switch (step.kind) {
    case 'field':
      return isRecord(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'key':
      if (isRecord(value) && Object.hasOwn(value, step.name)) return [value[step.name]];
      return step.path.reduce<readonly unknown[]>(
        (found, name) => found.flatMap((each) => (isRecord(each) && Object.hasOwn(each, name) ? [each[name]] : [])),
        [value],
      );
    case 'index': {
      if (!Array.isArray(value)) return [];
      const place = step.index < 0 ? value.length + step.index : step.index;
      return place >= 0 && place < value.length ? [value[place]] : [];
    }
    case 'slice': {
      if (!Array.isArray(value)) return [];
      const whole = value.slice(step.from, step.to);
      return step.every === 1 ? whole : whole.filter((_, index) => index % step.every === 0);
    }
    case 'all':
      return children(value);
    case 'union':
      return step.steps.flatMap((each) => take(each, value, root));
    case 'filter':
      return children(value).filter((item) => matches(step.filter, item, root));
    case 'deep':
      return [value, ...descendants(value)].flatMap((item) => take(step.step, item, root));
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Bytes.is(value);
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

function descendants(value: unknown): readonly unknown[] {
  return children(value).flatMap((child) => [child, ...descendants(child)]);
}

function matches(filter: Filter, item: unknown, root: unknown): boolean {
  const values = (side: Filter['left']): readonly unknown[] => (side.kind === 'literal' ? [side.value] : select(side.steps, root, item));
  const [left] = values(filter.left);
  // Alone, a path asks whether something is there, whatever it is.
  if (filter.operator === undefined || filter.right === undefined) return values(filter.left).length > 0;
  const [right] = values(filter.right);
  if (filter.operator === '==') return same(left, right);
  if (filter.operator === '!=') return !same(left, right);
  if (!isOrdered(left) || !isOrdered(right) || (typeof left === 'string') !== (typeof right === 'string')) return false;
  switch (filter.operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}

function isOrdered(value: unknown): value is string | number | bigint {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
}

function isNumeric(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function same(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (isNumeric(left) && isNumeric(right)) return !(left < right) && !(left > right);
  if (left === undefined || right === undefined || typeof left !== typeof right) return false;
  return valueText(left) === valueText(right);
}
