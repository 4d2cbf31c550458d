import { appendPath, Bytes, sameValue } from '../resource/index.ts';
import type { Desired, Live } from './port.ts';

/** One place where a live child is not as desired. */
export interface Difference {
  /** For example `spec.services.api.command[0]` or `labels.tier`. */
  readonly path: string;
  /** Absent: it is not there yet. */
  readonly live?: unknown;
  /** Absent: it goes. */
  readonly desired?: unknown;
}

/** Where a live child differs from the desired one. Order: labels, annotations, spec; keys in the order of the desired. */
export function differences(desired: Desired, live: Live): readonly Difference[] {
  const found: Difference[] = [];
  compare('labels', live.labels, desired.labels, found);
  compare('annotations', live.annotations, desired.annotations, found);
  compare('spec', live.body, desired.body, found);
  return found;
}

function compare(path: string, live: unknown, desired: unknown, found: Difference[]): void {
  if (sameValue(live, desired)) return;
  if (Array.isArray(live) && Array.isArray(desired)) {
    for (let index = 0; index < Math.max(live.length, desired.length); index++)
      compare(appendPath(path, index), live[index], desired[index], found);
  } else if (isRecord(live) && isRecord(desired)) {
    for (const key of new Set([...Object.keys(desired), ...Object.keys(live)]))
      compare(appendPath(path, key), own(live, key), own(desired, key), found);
  } else found.push({ path, ...(live !== undefined && { live }), ...(desired !== undefined && { desired }) });
}

function own(record: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Bytes.is(value);
}
