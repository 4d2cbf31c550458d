import { resolve } from 'node:path';
import type { Environment } from '../../environment/index.ts';
import type { Kind, Resource } from '../../resource/index.ts';
import { errorCode, findError, SteadystateError } from '../../resource/index.ts';
import type { CoreState, StoreAdmin } from '../../state/index.ts';
import { unavailable } from '../../state/index.ts';
import type { CommitRecord, Committer, EncodedResource } from '../broker/index.ts';
import { Broker, Commit } from '../broker/index.ts';
import { decodeStored } from './decode-stored.ts';
import { EarlyReads } from './early-reads.ts';
import type { FileIdentity } from './file-identity.ts';
import { changedPath } from './file-identity.ts';
import { openInWorker } from './open-in-worker.ts';
import { PackedRows } from './packed-rows.ts';
import type { HistoryRow, OpenAnswer, StoredValue, WriteMessage } from './protocol.ts';
import { encodeRecord } from './record-codec.ts';
import { storeAdminOf } from './store-admin.ts';
import { StoreWorker } from './store-worker.ts';

export interface SqliteStateOptions {
  /** Path of the file; made when it is missing, its folder is not. */
  readonly file: string;
  readonly environment: Environment;
  /** Events that are kept on disk for bookmarks, about. @default 100_000 */
  readonly historyLimit?: number;
  /** Events older than this are dropped from the disk, milliseconds. @default no limit */
  readonly historyAgeMs?: number;
  /** Commits of a kind that are kept in memory at least. @default 4096 */
  readonly historySize?: number;
  /** @default 1_000_000 */
  readonly pendingLimit?: number;
  /** @default 10_000 */
  readonly idleBookmarkMs?: number;
  /**
   * From so many resources on a store is open before all of them are read: a get of what is there is answered at once, everything else waits.
   * Smaller ones are read, and known to be whole, before. `Infinity`: all are. @default 20_000
   */
  readonly readBehindFrom?: number;
  /** Largest size of the file in pages of 4 KiB; absent: no limit. */
  readonly maxPages?: number;
}

/** A store in a file, and who it is. */
export interface SqliteState extends CoreState, AsyncDisposable {
  readonly storeId: string;
  /** The newest revision that readers see. */
  readonly revision: number;
  /**
   * Resolves once all resources are read and none is missing; until then a get is answered only with what its checksum proves, and lists,
   * watches and writes wait. Rejects with Corrupt or Unavailable, as does every call from then on; Closed when it was closed before.
   */
  readonly loaded: Promise<void>;
  /** Looking after the file while it is open. */
  readonly admin: StoreAdmin;
}

/**
 * A durable store in one file (SQLite, write-ahead log, synchronous=FULL). One process owns it; everything is served from
 * memory, and a write is acknowledged once it is on disk.
 *
 * Rejects with Locked (naming the holder), Corrupt, Unsupported (another format), Unavailable (cannot be opened).
 */
export async function openSqliteState(options: SqliteStateOptions): Promise<SqliteState> {
  const { environment, file } = options;
  const worker = new StoreWorker(environment);
  try {
    const opened = await openInWorker(environment, worker, {
      file,
      historyLimit: options.historyLimit ?? 100_000,
      historyAgeMs: options.historyAgeMs,
      maxPages: options.maxPages,
    });
    const committer = new WorkerCommitter(environment, worker, file, opened);
    const broker = new Broker({
      environment,
      committer,
      storeId: opened.storeId,
      revision: opened.revision,
      capabilities: { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: true },
      ...(options.historySize !== undefined && { historySize: options.historySize }),
      ...(options.pendingLimit !== undefined && { pendingLimit: options.pendingLimit }),
      ...(options.idleBookmarkMs !== undefined && { idleBookmarkMs: options.idleBookmarkMs }),
    });
    worker.onStopped = (error) => broker.poison(error);
    const loaded = load(broker, worker, { environment, file });
    if (opened.count < (options.readBehindFrom ?? 20_000)) await loaded;
    // Every call is told; nobody may have made one.
    loaded.catch((error: unknown) => {
      if (errorCode(error) !== 'Closed') environment.log.log('error', 'the store cannot be read', { file, error: String(error) });
    });
    return withClose(
      broker,
      worker,
      loaded,
      storeAdminOf({
        environment,
        file: resolve(file),
        open: true,
        use: (_own, work) => work(worker),
        compacted: (floor) => {
          committer.historyFloor = Math.max(committer.historyFloor, floor);
          broker.forgetUpTo(floor);
        },
      }),
    );
  } catch (error) {
    await worker.stop();
    throw error;
  }
}

/** Reads all resources into the broker, which answers meanwhile what it can. */
async function load(
  broker: Broker,
  worker: StoreWorker,
  { environment, file }: { readonly environment: Environment; readonly file: string },
): Promise<void> {
  const early = new EarlyReads(environment, worker, file);
  broker.beginLoading((pointer) => early.find(pointer));
  try {
    const kindOf = new Map<number, Kind>();
    await worker.load((message) => {
      for (const [number, kind] of message.kinds) kindOf.set(number, kind);
      loadRows(broker, file, kindOf, message.bytes);
    });
  } catch (error) {
    broker.endLoading(findError(error) ?? unavailable(`${file} could not be read`, error));
    throw error;
  } finally {
    early.end();
  }
  broker.endLoading();
}

/** The broker, whose end is also the end of its thread. */
function withClose(broker: Broker, worker: StoreWorker, loaded: Promise<void>, admin: StoreAdmin): SqliteState {
  const dispose = broker[Symbol.asyncDispose].bind(broker);
  let closing: Promise<void> | undefined;
  return Object.assign(broker, {
    loaded,
    admin,
    [Symbol.asyncDispose]: () => {
      closing ??= dispose().then(() => worker.stop());
      return closing;
    },
  });
}

class WorkerCommitter implements Committer {
  readonly #environment: Environment;
  readonly #worker: StoreWorker;
  readonly #file: string;
  readonly #identities: readonly FileIdentity[];
  historyFloor: number;

  constructor(environment: Environment, worker: StoreWorker, file: string, { historyFloor, identities }: OpenAnswer) {
    this.#environment = environment;
    this.#worker = worker;
    this.#file = file;
    this.#identities = identities;
    this.historyFloor = historyFloor;
  }

  async commit(records: readonly CommitRecord[]): Promise<void> {
    const writes = records.map(
      ({ kind, id, revision, value, old }): WriteMessage => ({
        kind,
        id,
        revision,
        uid: old === undefined ? revision : Number(old.metadata.uid),
        oldVersion: old === undefined ? null : Number(old.metadata.version),
        record: value === undefined ? null : encodeRecord(value),
      }),
    );
    const committed = this.#worker.commit(this.#environment.now(), writes);
    // While the disk syncs: what went into a file that was removed or replaced nobody will find again.
    const changed = changedPath(this.#identities);
    const historyFloor = await committed;
    if (changed !== undefined) {
      throw new SteadystateError(
        'Corrupt',
        `${changed} was removed or replaced while the store was open; stop, put the file back, and open it again`,
      );
    }
    this.historyFloor = historyFloor;
  }

  async history(kind: Kind, after: number, upTo: number): Promise<readonly Commit[]> {
    const rows = await this.#worker.call<readonly HistoryRow[]>({ call: 'history', kind, after, upTo });
    // One change's new value is the next one's old value: decoded once, and shared.
    const decoded = new Map<number, Resource>();
    const decode = (row: HistoryRow, stored: StoredValue | undefined): Resource | undefined => {
      if (stored === undefined) return undefined;
      const known = decoded.get(stored.version);
      if (known !== undefined) return known;
      const value = decodeStored(this.#file, { kind, id: row.id, uid: row.uid, version: stored.version }, stored.record);
      decoded.set(stored.version, value);
      return value;
    };
    return rows.map((row) => new Commit(row.revision, row.id, decode(row, row.old), decode(row, row.value)));
  }
}

/** What the records of one buffer have in common. */
interface RecordSource {
  readonly file: string;
  readonly buffer: Buffer;
}

/** A resource of one of the buffers that came at the start. */
class LazyRecord implements EncodedResource {
  readonly #source: RecordSource;
  readonly #kind: Kind;
  readonly #id: string;
  readonly #uid: number;
  readonly #version: number;
  readonly #start: number;
  readonly #end: number;

  constructor(source: RecordSource, kind: Kind, id: string, { uid, version, recordStart, end }: PackedRows) {
    this.#source = source;
    this.#kind = kind;
    this.#id = id;
    this.#uid = uid;
    this.#version = version;
    this.#start = recordStart;
    this.#end = end;
  }

  decode(): Resource {
    const { file, buffer } = this.#source;
    const place = { kind: this.#kind, id: this.#id, uid: this.#uid, version: this.#version };
    return decodeStored(file, place, buffer.toString('utf8', this.#start, this.#end));
  }
}

/** Hands the resources of one buffer to the broker; they stay encoded in it until somebody asks for one. */
function loadRows(broker: Broker, file: string, kindOf: ReadonlyMap<number, Kind>, bytes: Uint8Array): void {
  const rows = new PackedRows(bytes);
  const source = { file, buffer: rows.buffer };
  while (rows.next()) {
    const kind = kindOf.get(rows.kind) as Kind;
    const { id } = rows;
    if (broker.load(kind, id, new LazyRecord(source, kind, id, rows))) continue;
    throw new SteadystateError(
      'Corrupt',
      `${file} is damaged: it holds ${kind.type}/${kind.namespace}/${id} twice; restore a backup, or repair it`,
      { pointer: { ...kind, id } },
    );
  }
}
