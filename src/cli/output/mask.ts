import { Bytes, digest } from '../../resource/index.ts';

/** A value whose leaves are masked; a few characters of a digest show that one changed, and nothing else. */
export function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value === 'object' && value !== null && !Bytes.is(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item)]));
  return `*** (${digest(['mask', value]).slice(2, 8)})`;
}
