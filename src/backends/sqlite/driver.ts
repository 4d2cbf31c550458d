import { createRequire } from 'node:module';

/** The little of SQLite that is used, the same in both libraries below. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Statement {
  run(...parameters: readonly SqlValue[]): unknown;
  get(...parameters: readonly SqlValue[]): Record<string, SqlValue> | undefined;
  all(...parameters: readonly SqlValue[]): readonly Record<string, SqlValue>[];
  iterate(...parameters: readonly SqlValue[]): Iterable<Record<string, SqlValue>>;
  /** Rows come as arrays instead. */
  setReturnArrays(enabled: boolean): void;
}

export type SqlValue = string | number | bigint | null | Uint8Array;

/** Opens a file with Node's own SQLite where that is stable (24 and up), else with the library that ships its binaries. */
export function openDatabase(file: string, options: { readonly readOnly?: boolean } = {}): Database {
  const load = createRequire(import.meta.url);
  const major = Number(process.versions.node.split('.', 1)[0]);
  const { DatabaseSync } = load(major >= 24 ? 'node:sqlite' : '@photostructure/sqlite') as {
    readonly DatabaseSync: new (file: string, options: { readonly readOnly?: boolean }) => Database;
  };
  return new DatabaseSync(file, options);
}

/** SQLite's primary result code; `undefined` for any other error. */
export function resultCode(error: unknown): number | undefined {
  const { errcode, code, message } = error as { readonly errcode?: unknown; readonly code?: unknown; readonly message?: unknown };
  if (typeof errcode === 'number') return errcode & 0xff;
  // The library on Node 20 leaves the number out of errors of reading; SQLite's own words remain.
  return code === 'ERR_SQLITE_ERROR' ? wordsOf[String(message)] : undefined;
}

export const sqliteError = 1;
export const sqliteBusy = 5;
export const sqliteReadOnly = 8;
export const sqliteIoError = 10;
export const sqliteCorrupt = 11;
export const sqliteFull = 13;
export const sqliteCantOpen = 14;
export const sqliteMismatch = 20;
export const sqliteNotADatabase = 26;

const wordsOf: Readonly<Record<string, number>> = {
  'database is locked': sqliteBusy,
  'attempt to write a readonly database': sqliteReadOnly,
  'disk I/O error': sqliteIoError,
  'database disk image is malformed': sqliteCorrupt,
  'database or disk is full': sqliteFull,
  'unable to open database file': sqliteCantOpen,
  'file is not a database': sqliteNotADatabase,
};
