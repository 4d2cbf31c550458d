import type { EventPlace } from '../checksum.ts';
import { eventChecksum, kindSeed } from '../checksum.ts';
import type { KindRow } from '../store-file.ts';
import type { RawCell, RawValue } from './raw-cells.ts';
import { isTableLeaf, listedCells, possibleCells, rowBytes, saysItsType } from './raw-cells.ts';
import type { RawFile } from './raw-file.ts';
import type { StoredRow } from './rows.ts';
import { isIntact } from './rows.ts';

/** What the pages of a file tell, each row proven by its checksum. */
export interface RawRows {
  kinds(rows: readonly KindRow[]): void;
  resource(row: StoredRow, kind: KindRow): void;
  event(place: EventPlace, kind: KindRow): void;
  /** A row that does not match its checksum. */
  broken(row: Pick<StoredRow, 'uid' | 'id' | 'version' | 'kind'>): void;
}

/** Reads every page of a file, its write-ahead log too; `known`: the kinds that are known already. */
export function readRaw(raw: RawFile, known: readonly KindRow[], rows: RawRows): void {
  const free = raw.freePages();
  const kinds = new Map(known.map((row) => [row.number, row]));
  const cells = function* (): Generator<{ readonly cell: RawCell; readonly listed: boolean }> {
    const overflow = new Set<number>();
    const suspicious: Buffer[] = [];
    const look = function* (bytes: Buffer, number: number): Generator<{ readonly cell: RawCell; readonly listed: boolean }> {
      let whole = true;
      let read = 0;
      for (const cell of listedCells(raw, bytes, number)) {
        if (cell === undefined) whole = false;
        else {
          for (const page of cell.overflow) overflow.add(page);
          read += cell.bytes;
          yield { cell, listed: true };
        }
      }
      // What the page holds and does not list stands there all the same.
      if (!whole || read !== rowBytes(raw, bytes, number)) suspicious.push(bytes);
    };
    const unnamed: (readonly [number, Buffer])[] = [];
    for (const { number, bytes } of raw.pages()) {
      if (free.has(number)) continue;
      if (isTableLeaf(bytes, number)) yield* look(bytes, number);
      else if (!saysItsType(bytes, number)) unnamed.push([number, bytes]);
    }
    for (const { number, bytes } of raw.logged()) if (isTableLeaf(bytes, number)) yield* look(bytes, number);
    // What others hang on is their content, not rows.
    for (const [number, bytes] of unnamed) if (!overflow.has(number)) suspicious.push(bytes);
    for (const bytes of suspicious) for (const cell of possibleCells(raw, bytes)) yield { cell, listed: false };
  };
  // Without its kind no row can be proven: kinds first.
  for (const { cell } of cells()) {
    const [, namespace, type] = cell.columns;
    if (cell.columns.length !== 3 || typeof namespace !== 'string' || typeof type !== 'string' || kinds.has(cell.key)) continue;
    if (namespace === '' || type === '' || cell.key < 1 || cell.key > 1e6) continue;
    const kind = { namespace, type };
    kinds.set(cell.key, { kind, number: cell.key, seed: kindSeed(kind) });
  }
  rows.kinds([...kinds.values()]);
  for (const { cell, listed } of cells()) {
    const { columns } = cell;
    if (columns.length === 7) giveResource(cell, listed, kinds, rows);
    else if (columns.length === 13) giveEvent(cell, kinds, rows);
  }
}

function giveResource({ key, columns }: RawCell, listed: boolean, kinds: ReadonlyMap<number, KindRow>, rows: RawRows): void {
  const [, version, kind, id, crc, record, notes] = columns as readonly [
    RawValue,
    RawValue,
    RawValue,
    RawValue,
    RawValue,
    RawValue,
    RawValue,
  ];
  if (typeof version !== 'number' || typeof kind !== 'number' || typeof id !== 'string' || typeof crc !== 'number') return;
  if (typeof record !== 'string' || !(notes === null || Buffer.isBuffer(notes))) return;
  const row = { uid: key, version, kind, id, crc, record, private: notes };
  const known = kinds.get(kind);
  if (known !== undefined && isIntact(row, known)) rows.resource(row, known);
  else if (listed) rows.broken(row);
}

function giveEvent({ key, columns }: RawCell, kinds: ReadonlyMap<number, KindRow>, rows: RawRows): void {
  const [, kind, uid, id, change, at, floor, count, digest, crc, oldVersion] = columns;
  const numbers = [kind, uid, change, at, floor, count, digest, crc];
  if (!numbers.every((value) => typeof value === 'number') || typeof id !== 'string') return;
  if (!(oldVersion === null || typeof oldVersion === 'number')) return;
  const place = { revision: key, uid, id, change, at, floor, count, digest, oldVersion } as EventPlace;
  const known = kinds.get(kind as number);
  if (known !== undefined && crc === eventChecksum(known.seed, place)) rows.event(place, known);
}
