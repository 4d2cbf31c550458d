import { resourceChecksum } from '../checksum.ts';
import type { Database } from '../driver.ts';
import type { KindRow } from '../store-file.ts';

/** One row of the resources, all columns. */
export interface StoredRow {
  readonly uid: number;
  readonly version: number;
  /** Number of its kind. */
  readonly kind: number;
  readonly id: string;
  readonly crc: number;
  readonly record: string;
  readonly private: Uint8Array | null;
}

export const rowColumns = 'uid, version, kind, id, crc, record, private';

/** What one step may read, about: rows with an id and a record of so many characters together. */
const stepCharacters = 50_000;
const stepRows = 100;

export interface RowsRead {
  readonly rows: readonly StoredRow[];
  /** There are no more. */
  readonly last: boolean;
}

/** The rows that come after `uid`, a step's worth of them. */
export function rowsAfter(database: Database, uid: number): RowsRead {
  const { error, ...read } = readableRowsAfter(database, uid);
  if (error !== undefined) throw error;
  return read;
}

export function rowOf(database: Database, uid: number): StoredRow | undefined {
  return database.prepare(`SELECT ${rowColumns} FROM resources WHERE uid = ?`).get(uid) as StoredRow | undefined;
}

export function isIntact(row: StoredRow, kind: KindRow | undefined): boolean {
  return kind !== undefined && row.crc === resourceChecksum(kind.seed, row.uid, row.version, row.id, row.record);
}

export function rowName({ id, uid }: Pick<StoredRow, 'id' | 'uid'>, kind: KindRow | undefined): string {
  return kind === undefined ? `${id} (uid ${uid}, of a kind whose name is lost)` : `${kind.kind.type}/${kind.kind.namespace}/${id}`;
}

/** The same from a file that may be damaged: what can be read up to the damage, and the error that stops there. */
export function readableRowsAfter(database: Database, uid: number): RowsRead & { readonly error?: unknown } {
  const rows: StoredRow[] = [];
  try {
    let size = 0;
    const statement = database.prepare(`SELECT ${rowColumns} FROM resources WHERE uid > ? ORDER BY uid LIMIT ${stepRows}`);
    for (const row of statement.iterate(uid) as Iterable<unknown> as Iterable<StoredRow>) {
      // A damaged page may hold anything.
      rows.push({ ...row, id: String(row.id), record: String(row.record) });
      size += rows.at(-1)?.record.length ?? 0;
      if (size >= stepCharacters) break;
    }
    return { rows, last: size < stepCharacters && rows.length < stepRows };
  } catch (error) {
    return { rows, last: false, error };
  }
}
