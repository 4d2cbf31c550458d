import { kindSeed, resourceChecksum } from '../checksum.ts';
import type { Database, Statement } from '../driver.ts';
import { openDatabase } from '../driver.ts';
import { guard } from '../failures.ts';
import { formatVersion, toggle, writeHead } from '../head.ts';
import { makeShrinkable } from '../migrations.ts';
import { applicationId, tables } from '../schema.ts';
import type { KindRow } from '../store-file.ts';
import type { StoredRow } from './rows.ts';

/**
 * A store file that is being made: nobody opens it before it is whole, so nothing of it is synced on the way. It has no events, and
 * an identity of its own: no bookmark of another store leads into it.
 */
export class NewStore {
  readonly #path: string;
  readonly #database: Database;
  readonly #put: Statement;
  readonly #remove: Statement;
  readonly #versionOf: Statement;
  readonly #kind: Statement;
  readonly #kinds = new Set<number>();
  #closed = false;
  count = 0;
  digest = 0;

  /** `path`: an empty file, or none. */
  constructor(path: string) {
    this.#path = path;
    this.#database = guard(path, () => openDatabase(path));
    try {
      const database = this.#database;
      guard(path, () => {
        database.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
        makeShrinkable(database);
        database.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; ${Object.values(tables).join('; ')}`);
      });
      const prepare = (sql: string): Statement => guard(path, () => database.prepare(sql));
      this.#put = prepare('INSERT OR REPLACE INTO resources (uid, version, kind, id, crc, record, private) VALUES (?, ?, ?, ?, ?, ?, ?)');
      this.#remove = prepare('DELETE FROM resources WHERE uid = ?');
      this.#versionOf = prepare('SELECT version FROM resources WHERE uid = ?');
      this.#kind = prepare('INSERT INTO kinds (kind, namespace, type) VALUES (?, ?, ?)');
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /** Does nothing for a kind that is there. */
  kind({ number, kind }: Pick<KindRow, 'number' | 'kind'>): void {
    if (this.#kinds.has(number)) return;
    this.#kinds.add(number);
    guard(this.#path, () => this.#kind.run(number, kind.namespace, kind.type));
  }

  /** A row that is new. */
  add(row: StoredRow): void {
    const { uid, version, kind, id, crc, record, private: notes } = row;
    guard(this.#path, () => this.#put.run(uid, version, kind, id, crc, record, notes));
    this.count++;
    this.digest = toggle(this.digest, uid, version);
  }

  /** A row that may be there in an earlier version; `undefined`: it is not there any more. */
  set(uid: number, row: StoredRow | undefined): void {
    const before = this.versionOf(uid);
    if (before !== undefined) {
      this.count--;
      this.digest = toggle(this.digest, uid, before);
      guard(this.#path, () => this.#remove.run(uid));
    }
    if (row !== undefined) this.add(row);
  }

  versionOf(uid: number): number | undefined {
    const found = guard(this.#path, () => this.#versionOf.get(uid));
    return found === undefined ? undefined : Number(found.version);
  }

  /** Of a name that is there twice the newest incarnation stays; answers the others. */
  dropTwice(): readonly Pick<StoredRow, 'uid' | 'kind' | 'id'>[] {
    const rows = guard(this.#path, () =>
      this.#database
        .prepare(
          'SELECT uid, kind, id FROM resources JOIN (SELECT kind, id, max(uid) AS newest FROM resources GROUP BY kind, id HAVING count(*) > 1) USING (kind, id) WHERE uid < newest',
        )
        .all(),
    ) as unknown as readonly Pick<StoredRow, 'uid' | 'kind' | 'id'>[];
    for (const { uid } of rows) this.set(uid, undefined);
    return rows;
  }

  /** The file is whole after this, but not on disk yet. */
  finish({ storeId, revision }: { readonly storeId: string; readonly revision: number }): void {
    const head = { format: formatVersion, storeId, revision, floor: revision, count: this.count, digest: this.digest };
    guard(this.#path, () => {
      this.#database.prepare('INSERT INTO meta (name, value) VALUES (?, ?)').run('head', writeHead(head));
      this.#database.exec('COMMIT');
    });
    this.discard();
  }

  /** Closes it, finished or not. */
  discard(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#database.close();
  }
}

/** A row for what is not a row yet. */
export function newRow(kind: Pick<KindRow, 'number' | 'kind'>, row: Omit<StoredRow, 'kind' | 'crc' | 'private'>): StoredRow {
  const crc = resourceChecksum(kindSeed(kind.kind), row.uid, row.version, row.id, row.record);
  return { ...row, kind: kind.number, crc, private: null };
}
