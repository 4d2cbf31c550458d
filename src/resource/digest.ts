import { createHash } from 'node:crypto';
import { Bytes } from './bytes.ts';
import { isFrozenValue } from './values.ts';

/** Names how a digest is computed: another number means that digests cannot be compared, not that something changed. */
export const digestScheme = '1';

const remembered = new WeakMap<object, string>();

/**
 * A digest of plain data over a canonical form in which the order of keys does not count, with the scheme in
 * front (`1:…`). Remembered per frozen value.
 */
export function digest(value: unknown): string {
  const memo = typeof value === 'object' && value !== null && isFrozenValue(value) ? value : undefined;
  const known = memo && remembered.get(memo);
  if (known !== undefined) return known;
  const text = `${digestScheme}:${createHash('sha256').update(canonicalText(value)).digest('base64url')}`;
  if (memo) remembered.set(memo, text);
  return text;
}

/** Whether two digests were made by one scheme, so that they can be compared. */
export function comparableDigests(left: string, right: string): boolean {
  return left.split(':', 1)[0] === right.split(':', 1)[0];
}

/** Text that is the same exactly for equal plain data; every type has a mark of its own. */
export function canonicalText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
    case 'boolean':
      return String(value);
    case 'bigint':
      return `${value}n`;
    case 'undefined':
      return 'u';
    default:
      break;
  }
  if (value === null) return 'null';
  if (Bytes.is(value)) return `b"${value.toBase64()}"`;
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(record[key])}`).join(',')}}`;
}
