import type { Kind } from '../../resource/index.ts';
import type { WriteMessage } from './protocol.ts';

/**
 * A commit on its way to the store's thread, and the thread's answer. What goes between threads is paid by its objects and their
 * keys, and a lone writer waits for all of it: so one flat list goes there, and two numbers come back.
 */
export type PackedCommit = readonly [sequence: number, at: number, ...fields: Field[]];
export type CommitAnswer = readonly [sequence: number, historyFloor: number];

type Field = string | number | null;
const fieldsOfWrite = 7;

export function packCommit(sequence: number, at: number, writes: readonly WriteMessage[]): PackedCommit {
  const packed: [number, number, ...Field[]] = [sequence, at];
  for (const { kind, id, revision, uid, oldVersion, record } of writes)
    packed.push(kind.namespace, kind.type, id, revision, uid, oldVersion, record);
  return packed;
}

export function unpackWrites(packed: PackedCommit): readonly WriteMessage[] {
  const writes: WriteMessage[] = [];
  let kind: Kind = { namespace: '', type: '' };
  for (let place = 2; place < packed.length; place += fieldsOfWrite) {
    const [namespace, type, id, revision, uid, oldVersion, record] = packed.slice(place, place + fieldsOfWrite) as [
      string,
      string,
      string,
      number,
      number,
      number | null,
      string | null,
    ];
    // Neighbours are mostly of one kind.
    if (kind.namespace !== namespace || kind.type !== type) kind = { namespace, type };
    writes.push({ kind, id, revision, uid, oldVersion, record });
  }
  return writes;
}
