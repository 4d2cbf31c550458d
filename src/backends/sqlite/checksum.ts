import { crc32 } from 'node:zlib';
import type { Kind } from '../../resource/index.ts';

/** Starts the checksums of a kind's rows: a row moved to another kind is seen. */
export function kindSeed(kind: Kind): number {
  return crc32(`${kind.type}\u0000${kind.namespace}\u0000`);
}

/** Checksum of one stored resource; its place goes in too, so that swapped rows are seen. */
export function resourceChecksum(seed: number, uid: number, version: number, id: string | Uint8Array, record: string | Uint8Array): number {
  const place = `${uid}/${version}/`;
  // One call where all of it is text.
  if (typeof id === 'string' && typeof record === 'string') return crc32(place + id + record, seed);
  return crc32(record, crc32(id, crc32(place, seed)));
}

/** One row of the event log, without the value before: that has a checksum of its own. */
export interface EventPlace {
  readonly revision: number;
  readonly uid: number;
  readonly id: string;
  readonly change: number;
  readonly at: number;
  /** The store after it: see `Head`. */
  readonly floor: number;
  readonly count: number;
  readonly digest: number;
  readonly oldVersion: number | null;
}

export function eventChecksum(seed: number, event: EventPlace): number {
  const { revision, uid, id, change, at, floor, count, digest, oldVersion } = event;
  return crc32(`${revision}/${uid}/${change}/${at}/${floor}/${count}/${digest}/${oldVersion ?? '-'}/${id}`, seed);
}

/** Text with its checksum in front. */
export function seal(text: string): string {
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}`;
}

/** The text again; `undefined` when it was damaged. */
export function unseal(sealed: string): string | undefined {
  const text = sealed.slice(9);
  return seal(text) === sealed ? text : undefined;
}
