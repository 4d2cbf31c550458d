import { Bytes, digest } from '../../resource/index.ts';

/** A value whose leaves are masked; a few characters of a digest show that one changed, and nothing else. */
export function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value === 'object' && value !== null && !Bytes.is(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item)]));
  return `*** (${digest(['mask', value]).slice(2, 8)})`;
}

const mask = /^\*\*\* \(.{6}\)$/;

/** Where a value holds a mask instead of what it hides; `undefined`: nowhere. */
export function findMask(value: unknown, path: readonly (string | number)[] = []): readonly (string | number)[] | undefined {
  if (typeof value === 'string') return mask.test(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || Bytes.is(value)) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = findMask(item, [...path, Array.isArray(value) ? Number(key) : key]);
    if (found !== undefined) return found;
  }
  return undefined;
}
