import { Bytes } from './bytes.ts';
import type { InvalidIssue } from './errors.ts';
import { SteadystateError } from './errors.ts';
import { valueMark } from './mark.ts';
import { pointerText } from './pointers.ts';
import type { Pointer } from './resource.ts';
import { isWellFormed, visibleText } from './text.ts';

/** How deep a spec may be nested: `JSON.stringify` and YAML writers recurse, so there must be a cap. */
export const maximumDepth = 100;

/** Whether a value is known to be deeply frozen, checked plain data. */
export function isFrozenValue(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Bytes.is(value) || valueMark.on(value);
}

/**
 * Answers a deeply frozen copy of plain data; a value that an earlier call made comes back as it is. The caller's own
 * objects are neither frozen nor kept. Throws Invalid naming the path of what is not plain data.
 */
export function freezeSpec<Value>(value: Value, pointer?: Pointer, path = 'spec'): Value {
  if (typeof value === 'object' && value !== null && valueMark.on(value)) return value;
  return copyValue(value, new Position(pointer, path), 0) as Value;
}

/** Where a walk is; text is made only when something is wrong. */
class Position {
  readonly #pointer: Pointer | undefined;
  readonly #root: string;
  readonly keys: (string | number)[] = [];

  constructor(pointer: Pointer | undefined, root: string) {
    this.#pointer = pointer;
    this.#root = root;
  }

  fail(message: string): never {
    const path = this.keys.reduce<string>(appendPath, this.#root);
    throw invalid([{ path, message }], this.#pointer);
  }
}

/** Adds one step to the text of a path: `spec.a[0]["odd key"]`. */
export function appendPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return path === '' ? key : `${path}.${key}`;
  return `${path}[${JSON.stringify(key)}]`;
}

/** An Invalid error that lists its issues. */
export function invalid(issues: readonly InvalidIssue[], pointer?: Pointer, cause?: unknown): SteadystateError {
  const text = issues.map((issue) => (issue.path === '' ? issue.message : `${visibleText(issue.path)}: ${issue.message}`)).join('; ');
  const about = pointer === undefined ? '' : `${pointerText(pointer)} is invalid: `;
  return new SteadystateError('Invalid', `${about}${text}`, { ...(pointer && { pointer }), issues, cause });
}

function copyValue(value: unknown, at: Position, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      if (!isWellFormed(value)) at.fail('text must be well-formed Unicode; it holds half of a surrogate pair');
      return value;
    case 'boolean':
      return value;
    case 'number':
      return checkNumber(value, at);
    case 'bigint':
      if (value >= -maximumSafe && value <= maximumSafe)
        at.fail(`${value}n is a safe integer: write it as a number, so that its text form comes back the same`);
      return value;
    case 'object':
      if (value === null) return null;
      return copyObject(value, at, depth);
    default:
      return at.fail(
        `expected plain data, found ${value === undefined ? 'undefined (leave the key out, or use null)' : `a ${typeof value}`}`,
      );
  }
}

const maximumSafe = BigInt(Number.MAX_SAFE_INTEGER);

function checkNumber(value: number, at: Position): number {
  if (!Number.isFinite(value)) at.fail(`expected a finite number, found ${value}`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    at.fail(`${value} is beyond 2^53 and would be rounded: use a bigint`);
  }
  // Minus zero has no text form of its own everywhere.
  return value === 0 ? 0 : value;
}

function copyObject(value: object, at: Position, depth: number): unknown {
  if (valueMark.on(value) || Bytes.is(value)) return value;
  if (depth >= maximumDepth) at.fail(`nested deeper than ${maximumDepth} levels (or in a circle)`);
  if (Array.isArray(value)) {
    const copy: unknown[] = new Array(value.length);
    for (let index = 0; index < value.length; index++) {
      at.keys.push(index);
      copy[index] = copyValue(value[index], at, depth + 1);
      at.keys.pop();
    }
    return valueMark.seal(copy);
  }
  if (!isPlainMap(value)) {
    at.fail(
      value instanceof Uint8Array
        ? 'expected plain data, found a Uint8Array: use Bytes.from(…)'
        : `expected plain data, found an instance of ${className(value)}`,
    );
  }
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    at.keys.push(key);
    if (key === '__proto__') at.fail('this key is not allowed');
    if (!isWellFormed(key)) at.fail('a key must be well-formed Unicode');
    copy[key] = copyValue((value as Record<string, unknown>)[key], at, depth + 1);
    at.keys.pop();
  }
  if (Object.getOwnPropertySymbols(value).length > 0) at.fail('expected plain data, found a symbol as a key');
  return valueMark.seal(copy);
}

/** Whether a value is a plain object: a map of keys, not an instance of a class and not a list. */
export function isPlainMap(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || isForeignPlain(prototype as object);
}

/** A plain object of another realm (a vm context) has another Object.prototype with nothing above it. */
function isForeignPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf');
}

function className(value: object): string {
  const made: unknown = value.constructor;
  return typeof made === 'function' && made.name !== '' ? made.name : 'a class';
}
