import type { Kind, Pointer } from '../../resource/index.ts';
import type { OwnedStore } from './admin/open-store.ts';
import { eventChecksum, kindSeed, resourceChecksum } from './checksum.ts';
import { DiskRoom } from './disk-room.ts';
import type { Database, Statement } from './driver.ts';
import { asFailure, damaged, guard, StoreFailure } from './failures.ts';
import type { FileIdentity } from './file-identity.ts';
import { identitiesOf, ownPath } from './file-identity.ts';
import { findRows } from './find-rows.ts';
import type { Head } from './head.ts';
import { toggle, writeHead } from './head.ts';
import { openFile, putHead } from './open-file.ts';
import { PackedRows, packedRowsAfter } from './packed-rows.ts';
import type { FoundRow, HistoryRow, OpenedStore, OpenRequest, RowsMessage, WorkerFailure, WriteMessage } from './protocol.ts';
import { checkHistory, readHistory } from './read-history.ts';
import { created, destroyed, updated } from './schema.ts';
import { SideFile } from './side-file.ts';

const bytesPerMessage = 1 << 20;
/** The age of events is looked at this often, milliseconds. */
const ageCheckMs = 60_000;

/** Uid of the last, how many, and the rows themselves. */
type PackedSome = readonly [number | null, number, Uint8Array<ArrayBuffer> | null];

export interface KindRow {
  readonly kind: Kind;
  readonly number: number;
  readonly seed: number;
}

/** The file of one store, in the thread that owns it. Everything here is synchronous. */
export class StoreFile {
  readonly #file: string;
  readonly #database: Database;
  /** What must still be found at the paths before anything is acknowledged. */
  readonly identities: readonly FileIdentity[];
  readonly #historyLimit: number;
  readonly #historyAgeMs: number | undefined;
  readonly #kinds = new Map<string, KindRow>();
  /** The highest number that a kind was ever given here. */
  #lastKind = 0;
  readonly #side: SideFile;
  readonly #room: DiskRoom;
  /** The writes of the last commit, until it is noted. */
  #committed: readonly WriteMessage[] = [];
  readonly #sql: Readonly<
    Record<'begin' | 'commit' | 'kind' | 'create' | 'update' | 'destroy' | 'createEvent' | 'changeEvent' | 'head' | 'forget', Statement>
  >;
  #head: Head;
  readonly #onCommit = new Set<(writes: readonly WriteMessage[]) => void>();
  #stopped: StoreFailure | undefined;
  /** Told once when the disk fails in a work that no caller of a write waits for. */
  readonly #onStopped: (failure: WorkerFailure) => void;
  #historyChecked = false;
  #ageCheckedAt = Number.NEGATIVE_INFINITY;

  constructor(request: OpenRequest, onStopped: (failure: WorkerFailure) => void = () => {}) {
    this.#onStopped = onStopped;
    const file = ownPath(request.file);
    this.#file = file;
    this.#historyLimit = request.historyLimit;
    this.#historyAgeMs = request.historyAgeMs;
    const { database, head } = openFile(file, request);
    this.#database = database;
    this.#head = head;
    try {
      const prepare = (sql: string): Statement => guard(file, () => database.prepare(sql));
      const change = (rest: string): Statement =>
        prepare(
          `INSERT INTO events (revision, kind, uid, id, change, at, floor, count, digest, crc, oldVersion, oldCrc, old) SELECT ?, kind, uid, id, ?, ?, ?, ?, ?, ?, version, crc, record FROM resources WHERE ${rest}`,
        );
      this.#sql = {
        begin: prepare('BEGIN IMMEDIATE'),
        commit: prepare('COMMIT'),
        kind: prepare('INSERT INTO kinds (kind, namespace, type) VALUES (?, ?, ?)'),
        create: prepare('INSERT INTO resources (uid, version, kind, id, crc, record) VALUES (?, ?, ?, ?, ?, ?)'),
        update: prepare('UPDATE resources SET version = ?, crc = ?, record = ? WHERE uid = ?'),
        destroy: prepare('DELETE FROM resources WHERE uid = ?'),
        createEvent: prepare(
          'INSERT INTO events (revision, kind, uid, id, change, at, floor, count, digest, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        ),
        changeEvent: change('uid = ? AND version = ?'),
        head: guard(file, () => putHead(database)),
        forget: prepare('DELETE FROM events WHERE revision <= ?'),
      };
      for (const row of guard(file, () => database.prepare('SELECT kind, namespace, type FROM kinds').all())) {
        this.#addKind({ namespace: String(row.namespace), type: String(row.type) }, Number(row.kind));
      }
      this.#room = guard(file, () => new DiskRoom(file, database, request.maxPages));
      this.#side = new SideFile(file, { storeId: head.storeId, revision: head.revision, holder: request.holder });
      this.identities = identitiesOf(file);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  get opened(): OpenedStore {
    const { storeId, revision, floor, count } = this.#head;
    return { storeId, revision, historyFloor: floor, count };
  }

  /** The store for those who look after it while it is open. */
  get owned(): OwnedStore {
    return {
      file: this.#file,
      database: this.#database,
      head: () => this.#head,
      kinds: () => [...this.#kinds.values()],
      onCommit: (listen) => {
        this.#onCommit.add(listen);
        return { [Symbol.dispose]: () => void this.#onCommit.delete(listen) };
      },
      forget: (upTo) => this.#orTell(() => this.#transaction((head) => this.#forgetUpTo(head, upTo), { writeHead: true })),
      change: (work) => this.#orTell(work),
      afterChange: () => this.#orTell(() => this.#room.afterChange()),
      fold: () => this.#orTell(() => this.#room.fold()),
      makeRoom: () => this.#orTell(() => this.#room.enterFull()),
    };
  }

  /** Gives all resources, many at a time, each of which is right; at the end it is sure that none is missing. Nothing may be committed meanwhile. */
  *load(): Generator<RowsMessage, void, undefined> {
    const byNumber = new Map([...this.#kinds.values()].map((row) => [row.number, row]));
    let kinds = [...byNumber].map(([number, { kind }]) => [number, kind] as const);
    let count = 0;
    let digest = 0;
    const some = guard(this.#file, () => this.#database.prepare(packedRowsAfter));
    some.setReturnArrays(true);
    const next = (after: number, wanted: number): PackedSome => guard(this.#file, () => some.get(after, wanted) as unknown as PackedSome);
    let wanted = 64;
    for (let after = -1; ; ) {
      const [last, found, bytes] = next(after, wanted);
      if (last === null || bytes === null) break;
      const rows = new PackedRows(bytes);
      let read = 0;
      while (this.#nextRow(rows)) {
        const kind = byNumber.get(rows.kind);
        if (kind === undefined || rows.crc !== rows.checksum(kind.seed))
          throw damaged(this.#file, `the record of resource ${rows.uid} (${rows.id}) does not match its checksum`);
        read++;
        digest = toggle(digest, rows.uid, rows.version);
      }
      if (read !== found) throw damaged(this.#file, `of ${found} resources up to ${last} only ${read} can be read`);
      count += read;
      after = last;
      wanted = Math.max(1, Math.min(5_000, Math.floor((wanted * bytesPerMessage) / bytes.length)));
      yield { type: 'rows', kinds, bytes };
      kinds = [];
    }
    if (count !== this.#head.count || digest !== this.#head.digest)
      throw damaged(this.#file, `${this.#head.count} resources were written, ${count} are found, or others`);
  }

  /** Looks for resources by a walk over all, each found one held against its checksum. What is not found may have been hidden by damage. */
  find(pointers: readonly Pointer[]): readonly FoundRow[] {
    return guard(this.#file, () =>
      findRows(this.#database, { file: this.#file, kindOf: (kind) => this.#kinds.get(kindKey(kind)), pointers }),
    );
  }

  #nextRow(rows: PackedRows): boolean {
    try {
      return rows.next();
    } catch (error) {
      throw damaged(this.#file, `resources after ${rows.uid} cannot be read`, error);
    }
  }

  /** Makes writes durable: all of them, or none. Gives the floor of the event log. */
  commit(writes: readonly WriteMessage[], at: number): number {
    this.#orStop(() => {
      this.#room.beforeCommit();
      try {
        this.#transaction((head) => this.#write(head, writes, at));
      } catch (error) {
        // Destroying is the way out of a full store.
        if (!isFull(error) || writes.every((write) => write.record !== null)) throw error;
        this.#writeIntoFull(writes, at, error);
      }
    });
    this.#committed = writes;
    for (const listen of this.#onCommit) listen(writes);
    return this.#head.floor;
  }

  /** Notes what was committed, which only helps against a damaged log, and sees to the room; once the answer is on its way. */
  noteCommitted(): void {
    this.#side.mark(this.#head.revision);
    const writes = this.#committed;
    this.#committed = [];
    try {
      const bytes = writes.reduce((sum, { record }) => sum + (record?.length ?? 0), 0);
      this.#orTell(() => this.#room.afterCommit(writes.length, bytes));
    } catch {
      // It was told.
    }
  }

  /** For what no writer waits for: who has the store open learns that it takes no more writes. */
  #orTell(work: () => void): void {
    const before = this.#stopped;
    try {
      this.#orStop(work);
    } finally {
      if (this.#stopped !== undefined && this.#stopped !== before) this.#onStopped(this.#stopped.failure);
    }
  }

  /** Once the disk has failed nothing is written any more, not even at the end: what would become of it nobody knows. */
  #orStop<Value>(work: () => Value): Value {
    if (this.#stopped !== undefined) throw this.#stopped;
    try {
      return guard(this.#file, work);
    } catch (error) {
      const { failure } = asFailure(this.#file, error);
      const code = failure.code === 'Ambiguous' ? 'Unavailable' : failure.code;
      if (code !== 'NoSpace') this.#stopped = new StoreFailure({ ...failure, code }, error);
      throw error;
    }
  }

  /** Older commits of a kind. */
  history(kind: Kind, after: number, upTo: number): readonly HistoryRow[] {
    const row = this.#kinds.get(kindKey(kind));
    if (row === undefined) return [];
    const file = this.#file;
    return guard(file, () => {
      if (!this.#historyChecked) checkHistory(this.#database, { ...this.#head, file, kinds: this.#kinds.values() });
      this.#historyChecked = true;
      return readHistory(this.#database, { file, row, after, upTo });
    });
  }

  /** Leaves one plain file behind. */
  close(): void {
    this.#room.remove();
    try {
      if (this.#stopped !== undefined) throw this.#stopped;
      this.#transaction((head) => head, { writeHead: true });
      this.#database.exec('PRAGMA journal_mode = DELETE');
      this.#side.remove();
      // The library on Node 20 keeps the file open until its statements are collected: leave the lock by ourselves.
      this.#database.exec('PRAGMA locking_mode = NORMAL');
      this.#database.prepare('SELECT count(*) FROM meta').get();
    } catch {
      // A full or damaged file stays as after a crash, and is opened as such.
    }
    this.#database.close();
  }

  #transaction(work: (head: Head) => Head, options = { writeHead: false }): void {
    const known = this.#kinds.size;
    let committing = false;
    try {
      this.#sql.begin.run();
      const head = work(this.#head);
      // An empty event log cannot tell the state.
      if (options.writeHead || head.floor === head.revision) this.#sql.head.run('head', writeHead(head));
      committing = true;
      this.#sql.commit.run();
      this.#head = head;
    } catch (error) {
      rollBack(this.#database);
      // Kinds are kept in the order in which they came.
      if (this.#kinds.size > known) for (const key of [...this.#kinds.keys()].slice(known)) this.#kinds.delete(key);
      const failure = asFailure(this.#file, error);
      // The end of a commit that failed may or may not have reached the disk.
      if (committing && failure.failure.code === 'Unavailable') throw new StoreFailure({ ...failure.failure, code: 'Ambiguous' }, error);
      throw failure;
    }
  }

  #write(before: Head, writes: readonly WriteMessage[], at: number): Head {
    let head = { ...before, floor: this.#nextFloor(before, writes, at) };
    for (const write of writes) {
      const { kind, id, uid, revision, record, oldVersion } = write;
      const row = this.#kindRow(kind);
      let { digest } = head;
      if (oldVersion !== null) digest = toggle(digest, uid, oldVersion);
      if (record !== null) digest = toggle(digest, uid, revision);
      const count = head.count + Number(record !== null) - Number(oldVersion !== null);
      head = { ...head, revision, count, digest };
      if (revision > head.floor) this.#writeEvent(head, row, write, at);
      if (record === null) {
        this.#expectOne(this.#sql.destroy.run(uid), write);
        continue;
      }
      const crc = resourceChecksum(row.seed, uid, revision, id, record);
      if (oldVersion === null) this.#sql.create.run(uid, revision, row.number, id, crc, record);
      else this.#expectOne(this.#sql.update.run(revision, crc, record, uid), write);
    }
    if (head.floor > before.floor) this.#sql.forget.run(head.floor);
    return head;
  }

  /** Cuts the event log a little at each commit, so that none of them waits for a large cut. */
  #nextFloor({ floor, revision }: Head, writes: readonly WriteMessage[], at: number): number {
    const last = writes.at(-1)?.revision ?? revision;
    const wanted = Math.max(last - this.#historyLimit, this.#agedFloor(floor, at));
    return Math.max(floor, Math.min(wanted, floor + 2 * writes.length + 64));
  }

  #writeEvent({ floor, count, digest }: Head, row: KindRow, write: WriteMessage, at: number): void {
    const { id, uid, revision, record, oldVersion } = write;
    const change = oldVersion === null ? created : record === null ? destroyed : updated;
    const crc = eventChecksum(row.seed, { revision, uid, id, change, at, floor, count, digest, oldVersion });
    if (oldVersion === null) this.#sql.createEvent.run(revision, row.number, uid, id, change, at, floor, count, digest, crc);
    else this.#expectOne(this.#sql.changeEvent.run(revision, change, at, floor, count, digest, crc, uid, oldVersion), write);
  }

  #expectOne(result: unknown, { id, kind }: WriteMessage): void {
    if (Number((result as { readonly changes: number | bigint }).changes) === 1) return;
    throw damaged(this.#file, `the row of ${kind.type}/${kind.namespace}/${id} is not there any more`);
  }

  /** Up to which revision events are older than they may be. */
  #agedFloor(floor: number, at: number): number {
    if (this.#historyAgeMs === undefined || at - this.#ageCheckedAt < Math.min(ageCheckMs, this.#historyAgeMs)) return floor;
    const young = this.#database
      .prepare('SELECT revision FROM events WHERE at >= ? ORDER BY revision LIMIT 1')
      .get(at - this.#historyAgeMs);
    const aged = Number(young?.revision ?? floor + 1) - 1;
    // Not done in one go: look again at the next commit.
    if (aged <= floor) this.#ageCheckedAt = at;
    return aged;
  }

  /** A destroy gets the room that was kept for it; then the event log gives way: its older half, and if need be all of it. */
  #writeIntoFull(writes: readonly WriteMessage[], at: number, cause: unknown): void {
    const write = (head: Head): Head => this.#write(head, writes, at);
    const attempts = [
      () => this.#transaction(write),
      () => {
        this.#transaction((head) => this.#forgetUpTo(head, head.floor + Math.ceil((head.revision - head.floor) / 2)), { writeHead: true });
        this.#room.fold();
        this.#transaction(write);
      },
      () => this.#transaction((head) => write(this.#forgetUpTo(head, writes.at(-1)?.revision ?? head.revision))),
    ];
    this.#room.enterFull();
    for (const attempt of attempts) {
      try {
        return attempt();
      } catch (error) {
        if (!isFull(error)) throw error;
        this.#room.fold();
      }
    }
    throw cause;
  }

  #forgetUpTo(head: Head, floor: number): Head {
    this.#sql.forget.run(floor);
    return { ...head, floor };
  }

  #kindRow(kind: Kind): KindRow {
    const known = this.#kinds.get(kindKey(kind));
    if (known !== undefined) return known;
    const number = this.#lastKind + 1;
    this.#sql.kind.run(number, kind.namespace, kind.type);
    return this.#addKind(kind, number);
  }

  #addKind(kind: Kind, number: number): KindRow {
    const row = { kind, number, seed: kindSeed(kind) };
    this.#kinds.set(kindKey(kind), row);
    this.#lastKind = Math.max(this.#lastKind, number);
    return row;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof StoreFailure && error.failure.code === 'NoSpace';
}

function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // SQLite has rolled back by itself after some errors; then there is no transaction any more.
  }
}

function kindKey({ namespace, type }: Kind): string {
  return `${type}\u0000${namespace}`;
}
