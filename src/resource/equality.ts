import { Bytes } from './bytes.ts';
import type { Resource, Tombstone } from './resource.ts';

/** Deep equality of plain data. The order of keys does not count. */
export function sameValue(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return typeof left === 'number' && typeof right === 'number' && Number.isNaN(left) && Number.isNaN(right);
  }
  if (Bytes.is(left) || Bytes.is(right)) return Bytes.is(left) && Bytes.is(right) && left.equals(right);
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => sameValue(item, right[index]));
  }
  const leftKeys = Object.keys(left);
  if (leftKeys.length !== Object.keys(right).length) return false;
  return leftKeys.every(
    (key) => Object.hasOwn(right, key) && sameValue((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]),
  );
}

/** Whether two ordered sets hold the same texts. */
export function sameSet(left: readonly string[], right: readonly string[]): boolean {
  return left === right || (left.length === right.length && left.every((item) => right.includes(item)));
}

/**
 * Equality of resources: pointer, version, owner, phase, labels, annotations, finalizers as a set, spec. Not created and
 * updated.
 */
export function sameResource(left: Resource | Tombstone, right: Resource | Tombstone): boolean {
  if (left === right) return true;
  const a = left.metadata;
  const b = right.metadata;
  return (
    a.namespace === b.namespace &&
    a.type === b.type &&
    a.id === b.id &&
    a.version === b.version &&
    a.owner === b.owner &&
    a.phase === b.phase &&
    sameSet(a.finalizers, b.finalizers) &&
    sameValue(a.labels, b.labels) &&
    sameValue(a.annotations, b.annotations) &&
    sameValue(left.spec, right.spec)
  );
}
