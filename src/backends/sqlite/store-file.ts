import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Kind } from '../../resource/index.ts';
import { seal, unseal } from './checksum.ts';
import type { Database, Statement } from './driver.ts';
import {
  openDatabase,
  resultCode,
  sqliteBusy,
  sqliteCantOpen,
  sqliteCorrupt,
  sqliteFull,
  sqliteIoError,
  sqliteNotADatabase,
  sqliteReadOnly,
} from './driver.ts';
import type { CommitAnswer, HistoryRow, OpenAnswer, OpenRequest, StoredRow, WorkerFailure, WriteMessage } from './protocol.ts';

/** What a file says it is; another number is another layout. */
const formatVersion = 1;
const rowsPerMessage = 2_000;

/** A failure with the code that the caller gets. */
export class StoreFailure extends Error {
  readonly failure: WorkerFailure;
  constructor(failure: WorkerFailure, cause?: unknown) {
    super(failure.message, cause === undefined ? undefined : { cause });
    this.failure = failure;
  }
}

/** The file of one store, in the thread that owns it. Everything here is synchronous. */
export class StoreFile {
  readonly #file: string;
  readonly #database: Database;
  readonly #identity: string;
  readonly #historyLimit: number;
  readonly #kinds = new Map<string, number>();
  readonly #insertKind: Statement;
  readonly #insertEvent: Statement;
  readonly #put: Statement;
  readonly #remove: Statement;
  readonly #setMeta: Statement;
  #events: number;
  #historyFloor: number;
  readonly opened: OpenAnswer;

  constructor(request: OpenRequest) {
    const { file } = request;
    this.#file = file;
    this.#historyLimit = request.historyLimit;
    this.#database = guard(file, () => open(request));
    try {
      this.#identity = identityOf(file);
      const { database } = this;
      const prepare = (sql: string): Statement => database.prepare(sql);
      guard(file, () => migrate(database, request.newStoreId, file));
      this.#setMeta = prepare('INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value');
      this.#insertKind = prepare('INSERT INTO kinds (kind, namespace, type) VALUES (?, ?, ?)');
      this.#insertEvent = prepare(
        'INSERT INTO events (revision, kind, id, record, old) VALUES (?, ?, ?, ?, (SELECT record FROM resources WHERE kind = ? AND id = ?))',
      );
      this.#put = prepare(
        'INSERT INTO resources (kind, id, record) VALUES (?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET record = excluded.record',
      );
      this.#remove = prepare('DELETE FROM resources WHERE kind = ? AND id = ?');
      for (const row of guard(file, () => prepare('SELECT kind, namespace, type FROM kinds').all())) {
        this.#kinds.set(kindKey({ namespace: String(row.namespace), type: String(row.type) }), Number(row.kind));
      }
      const meta = readMeta(database);
      this.#events = Number(guard(file, () => prepare('SELECT count(*) AS count FROM events').get())?.count ?? 0);
      this.#historyFloor = Number(meta.get('historyFloor') ?? 0);
      this.opened = { storeId: String(meta.get('storeId')), revision: Number(meta.get('revision') ?? 0), historyFloor: this.#historyFloor };
      writeFileSync(`${file}.holder`, request.holder);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  get database(): Database {
    return this.#database;
  }

  /** Gives all resources, some at a time. */
  load(give: (rows: readonly StoredRow[]) => void): void {
    const kinds = new Map<number, Kind>([...this.#kinds].map(([key, number]) => [number, JSON.parse(key) as Kind]));
    let rows: StoredRow[] = [];
    guard(this.#file, () => {
      for (const row of this.#database.prepare('SELECT kind, id, record FROM resources').iterate()) {
        const kind = kinds.get(Number(row.kind));
        if (kind === undefined)
          throw new StoreFailure({ code: 'Corrupt', message: `${this.#file} is damaged: a resource ${String(row.id)} of an unknown kind` });
        rows.push({ kind, id: String(row.id), record: this.#unseal(kind, String(row.id), row.record as Uint8Array) });
        if (rows.length >= rowsPerMessage) {
          give(rows);
          rows = [];
        }
      }
    });
    give(rows);
  }

  /** Makes writes durable: all of them, or none. */
  commit(writes: readonly WriteMessage[]): CommitAnswer {
    const { database } = this;
    // A file that was removed or replaced would take writes that nobody will find again.
    this.#checkIdentity();
    guard(this.#file, () => {
      database.exec('BEGIN IMMEDIATE');
      try {
        for (const write of writes) this.#write(write);
        this.#setMeta.run('revision', String(writes.at(-1)?.revision ?? 0));
        this.#events += writes.length;
        if (this.#events > this.#historyLimit * 1.25) this.#compact();
        database.exec('COMMIT');
      } catch (error) {
        rollBack(database);
        this.#forgetStaged();
        throw error;
      }
    });
    this.#checkIdentity();
    return { historyFloor: this.#historyFloor };
  }

  /** Older commits of a kind. */
  history(kind: Kind, after: number, upTo: number): readonly HistoryRow[] {
    const number = this.#kinds.get(kindKey(kind));
    if (number === undefined) return [];
    return guard(this.#file, () =>
      this.#database
        .prepare('SELECT revision, id, record, old FROM events WHERE kind = ? AND revision > ? AND revision <= ? ORDER BY revision')
        .all(number, after, upTo)
        .map((row) => {
          const id = String(row.id);
          const text = (record: unknown): string | null => (record === null ? null : this.#unseal(kind, id, record as Uint8Array));
          return { revision: Number(row.revision), id, record: text(row.record), old: text(row.old) };
        }),
    );
  }

  close(): void {
    this.#database.close();
    rmSync(`${this.#file}.holder`, { force: true });
  }

  #write({ kind, id, revision, record }: WriteMessage): void {
    const number = this.#kindNumber(kind);
    const sealed = record === null ? null : seal(rowKey(kind, id), record);
    this.#insertEvent.run(revision, number, id, sealed, number, id);
    if (sealed === null) this.#remove.run(number, id);
    else this.#put.run(number, id, sealed);
  }

  #kindNumber(kind: Kind): number {
    const key = kindKey(kind);
    let number = this.#kinds.get(key);
    if (number === undefined) {
      number = Math.max(0, ...this.#kinds.values()) + 1;
      this.#insertKind.run(number, kind.namespace, kind.type);
      this.#kinds.set(key, number);
    }
    return number;
  }

  /** Drops the oldest events, within the transaction of a commit. */
  #compact(): void {
    const drop = this.#events - this.#historyLimit;
    const last = this.#database.prepare('SELECT revision FROM events ORDER BY revision LIMIT 1 OFFSET ?').get(drop - 1);
    if (last === undefined) return;
    this.#database.prepare('DELETE FROM events WHERE revision <= ?').run(Number(last.revision));
    this.#historyFloor = Number(last.revision);
    this.#setMeta.run('historyFloor', String(last.revision));
    this.#events -= drop;
  }

  /** After a rollback the memory of what was written in the transaction is read again. */
  #forgetStaged(): void {
    try {
      this.#kinds.clear();
      for (const row of this.#database.prepare('SELECT kind, namespace, type FROM kinds').all()) {
        this.#kinds.set(kindKey({ namespace: String(row.namespace), type: String(row.type) }), Number(row.kind));
      }
      this.#events = Number(this.#database.prepare('SELECT count(*) AS count FROM events').get()?.count ?? 0);
      this.#historyFloor = Number(readMeta(this.#database).get('historyFloor') ?? 0);
    } catch {
      // The failure that led here is the one to tell; a store that cannot even be read is poisoned by it.
    }
  }

  #unseal(kind: Kind, id: string, sealed: Uint8Array): string {
    const text = unseal(rowKey(kind, id), sealed);
    if (text === undefined) {
      throw new StoreFailure({
        code: 'Corrupt',
        message: `${this.#file} is damaged: the record of ${kind.type}/${kind.namespace}/${id} does not match its checksum; restore a backup`,
      });
    }
    return text;
  }

  #checkIdentity(): void {
    if (identityOf(this.#file) === this.#identity) return;
    throw new StoreFailure({
      code: 'Corrupt',
      message: `${this.#file} was removed or replaced while it was open; stop, put the file back, and open it again`,
    });
  }
}

function open(request: OpenRequest): Database {
  const database = openDatabase(request.file);
  try {
    // One process owns the file, and the operating system frees it when that process ends in whatever way.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0');
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 2000',
    );
    if (request.maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${request.maxPages}`);
    // The lock is taken by the first write transaction.
    database.exec('BEGIN IMMEDIATE; COMMIT');
    return database;
  } catch (error) {
    database.close();
    if (resultCode(error) === sqliteBusy) {
      const holder = readHolder(request.file);
      throw new StoreFailure(
        { code: 'Locked', message: `${request.file} is in use by ${holder}; use that program's server, or stop it`, holder },
        error,
      );
    }
    throw error;
  }
}

function migrate(database: Database, newStoreId: string, file: string): void {
  const tables = database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .map((row) => String(row.name));
  if (tables.length === 0) {
    database.exec(`
      BEGIN IMMEDIATE;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE kinds (kind INTEGER PRIMARY KEY, namespace TEXT NOT NULL, type TEXT NOT NULL);
      CREATE TABLE resources (kind INTEGER NOT NULL, id TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
      CREATE TABLE events (revision INTEGER PRIMARY KEY, kind INTEGER NOT NULL, id TEXT NOT NULL, record BLOB, old BLOB);
      INSERT INTO meta VALUES ('format', '${formatVersion}'), ('storeId', '${newStoreId}'), ('revision', '0'), ('historyFloor', '0');
      COMMIT;
    `);
    return;
  }
  if (!tables.includes('meta'))
    throw new StoreFailure({ code: 'Unsupported', message: `${file} is a database, but not a store of this program; name another file` });
  const format = readMeta(database).get('format');
  if (format !== String(formatVersion)) {
    throw new StoreFailure({
      code: 'Unsupported',
      message: `${file} has format ${format ?? 'unknown'}, this program knows ${formatVersion}; use a newer version of it`,
    });
  }
}

function readMeta(database: Database): Map<string, string> {
  return new Map(
    database
      .prepare('SELECT name, value FROM meta')
      .all()
      .map((row) => [String(row.name), String(row.value)]),
  );
}

function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // SQLite has rolled back by itself after some errors; then there is no transaction any more.
  }
}

function readHolder(file: string): string {
  try {
    return readFileSync(`${file}.holder`, 'utf8').slice(0, 200);
  } catch {
    return 'another process';
  }
}

function identityOf(file: string): string {
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return 'absent';
  }
}

/** Runs something on the database, and tells its failures in our words. */
function guard<Value>(file: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    const message = error instanceof Error ? error.message : String(error);
    switch (resultCode(error)) {
      case sqliteFull:
        throw new StoreFailure({ code: 'NoSpace', message: `no space left for ${file}; reading and destroying go on, make room` }, error);
      case sqliteCorrupt:
      case sqliteNotADatabase:
        throw new StoreFailure({ code: 'Corrupt', message: `${file} is damaged or not a database: ${message}; restore a backup` }, error);
      case sqliteReadOnly:
        throw new StoreFailure({ code: 'Unavailable', message: `${file} may not be written: ${message}; check its permissions` }, error);
      case sqliteCantOpen:
        throw new StoreFailure(
          { code: 'Unavailable', message: `${file} cannot be opened: ${message}; check that its folder exists and its permissions` },
          error,
        );
      case sqliteIoError:
        throw new StoreFailure(
          { code: 'Unavailable', message: `reading or writing ${file} failed: ${message}; check the disk, then open the store again` },
          error,
        );
      default:
        throw new StoreFailure({ code: 'Unavailable', message: `the store ${file} failed: ${message}` }, error);
    }
  }
}

function kindKey({ namespace, type }: Kind): string {
  return JSON.stringify({ namespace, type });
}

function rowKey(kind: Kind, id: string): string {
  return `${kind.type}\u0000${kind.namespace}\u0000${id}\u0000`;
}
