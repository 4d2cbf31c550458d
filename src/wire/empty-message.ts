import { parseYamlValue } from './yaml-parse.ts';

/** Texts of Go's zero values that are not empty: of a duration and of a moment. */
const zeroTexts: ReadonlySet<string> = new Set(['', '0s', '0001-01-01T00:00:00Z']);

/**
 * Whether the text form of a spec says nothing but zero values. The protobuf form of such a spec is empty, which the protocol
 * cannot tell from none: a writer in Go that sets a spec back to its beginning sends just this text.
 */
export function saysEmptyMessage(yaml: string): boolean {
  if (yaml === '') return true;
  try {
    return isZero(parseYamlValue(yaml));
  } catch {
    // What cannot be read says something else.
    return false;
  }
}

function isZero(value: unknown): boolean {
  if (value === null || value === false || value === 0) return true;
  if (typeof value === 'string') return zeroTexts.has(value);
  // Neither a list with elements nor bytes are the beginning of anything: Object.values of bytes has none.
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.values(value as object).every(isZero);
}
