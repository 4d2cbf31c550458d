import { seal, unseal } from './checksum.ts';

/** The layout that this program writes. Older ones are brought up to it when they are opened (`migrations.ts`). */
export const formatVersion = 2;

/**
 * What a file says about itself, in one sealed row that every format keeps. It is written at the open, at the end, and whenever the
 * event log is emptied; in between the newest event tells what has changed.
 */
export interface Head {
  readonly format: number;
  readonly storeId: string;
  /** The newest revision; kept on its own, since the event log may be empty. */
  readonly revision: number;
  /** Everything at or below this revision is no longer in the event log. */
  readonly floor: number;
  /** Resources, and a digest of their uids and versions: a row that a damaged page hides is missed. */
  readonly count: number;
  readonly digest: number;
}

export function writeHead(head: Head): string {
  return seal(JSON.stringify(head));
}

/** `undefined` when it was damaged. Of a newer format only `format` can be relied on. */
export function readHead(text: string): Head | undefined {
  const json = unseal(text);
  return json === undefined ? undefined : (JSON.parse(json) as Head);
}

/** Adds a resource to a digest, or takes it away again. */
export function toggle(digest: number, uid: number, version: number): number {
  let mixed = Math.imul(low(uid), 0x9e3779b1) ^ Math.imul(low(version), 0x85ebca6b) ^ high(uid) ^ Math.imul(high(version), 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  return (digest ^ mixed ^ (mixed >>> 13)) >>> 0;
}

function low(value: number): number {
  return (value % 2 ** 32) | 0;
}

function high(value: number): number {
  return Math.floor(value / 2 ** 32) | 0;
}
