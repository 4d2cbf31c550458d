import { Bytes } from './bytes.ts';

/** Whether JSON says all of it: no bigint, no bytes, no key that looks like one of our tags. */
function isPlainJson(value: unknown): boolean {
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (Bytes.is(value)) return false;
  if (Array.isArray(value)) return value.every(isPlainJson);
  for (const key of Object.keys(value)) {
    if (key.startsWith('$') || !isPlainJson((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

/**
 * Plain data as JSON can say it: an integer beyond 2^53 is `{"$integer": "…"}`, bytes are `{"$bytes": "base64"}`, and a key that begins
 * with `$` gets one more. What JSON says as it is comes back as it is.
 */
export function toTagged(value: unknown): unknown {
  return isPlainJson(value) ? value : tag(value);
}

function tag(value: unknown): unknown {
  if (typeof value === 'bigint') return { $integer: String(value) };
  if (typeof value !== 'object' || value === null) return value;
  if (Bytes.is(value)) return { $bytes: value.toBase64() };
  if (Array.isArray(value)) return value.map(tag);
  // A key of the user's that begins with $ gets one more.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.startsWith('$') ? `$${key}` : key, tag(item)]));
}

/** The data of what `toTagged` made. Throws a SyntaxError for an integer that is none. */
export function fromTagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(fromTagged);
  const { $integer, $bytes } = value as { readonly $integer?: unknown; readonly $bytes?: unknown };
  if (typeof $integer === 'string') return BigInt($integer);
  if (typeof $bytes === 'string') return Bytes.from(Buffer.from($bytes, 'base64'));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.startsWith('$$') ? key.slice(1) : key, fromTagged(item)]));
}
