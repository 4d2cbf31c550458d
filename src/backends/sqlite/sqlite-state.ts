import type { Environment } from '../../environment/index.ts';
import type { Kind } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { CoreState } from '../../state/index.ts';
import type { CommitRecord, Committer } from '../broker/index.ts';
import { Broker, Commit } from '../broker/index.ts';
import type { CommitAnswer, HistoryRow, OpenAnswer } from './protocol.ts';
import { decodeRecord, encodeRecord } from './record-codec.ts';
import { StoreWorker, thisProgram } from './store-worker.ts';

export interface SqliteStateOptions {
  /** Path of the file; made when it is missing, its folder is not. */
  readonly file: string;
  readonly environment: Environment;
  /** Events that are kept for bookmarks over restarts, about. @default 100_000 */
  readonly historyLimit?: number;
  /** Commits of a kind that are kept in memory at least. @default 4096 */
  readonly historySize?: number;
  /** @default 1_000_000 */
  readonly pendingLimit?: number;
  /** @default 10_000 */
  readonly idleBookmarkMs?: number;
  /** Largest size of the file in pages of 4 KiB; absent: no limit. */
  readonly maxPages?: number;
}

/** A store in a file, and who it is. */
export interface SqliteState extends CoreState, AsyncDisposable {
  readonly storeId: string;
  /** The newest revision that readers see. */
  readonly revision: number;
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
    const opened = await worker.call<OpenAnswer>({
      call: 'open',
      file,
      holder: `${thisProgram()} since ${environment.timestamp()}`,
      newStoreId: environment.id(),
      historyLimit: options.historyLimit ?? 100_000,
      maxPages: options.maxPages,
    });
    const committer = new WorkerCommitter(worker, file, opened.historyFloor);
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
    await worker.load((rows) => {
      for (const { kind, id, record } of rows) broker.load(kind, id, { decode: () => decode(file, kind, id, record) });
    });
    return withClose(broker, worker);
  } catch (error) {
    await worker.stop();
    throw error;
  }
}

/** The broker, whose end is also the end of its thread. */
function withClose(broker: Broker, worker: StoreWorker): SqliteState {
  const dispose = broker[Symbol.asyncDispose].bind(broker);
  let closing: Promise<void> | undefined;
  return Object.assign(broker, {
    [Symbol.asyncDispose]: () => {
      closing ??= dispose().then(() => worker.stop());
      return closing;
    },
  });
}

class WorkerCommitter implements Committer {
  readonly #worker: StoreWorker;
  readonly #file: string;
  historyFloor: number;

  constructor(worker: StoreWorker, file: string, historyFloor: number) {
    this.#worker = worker;
    this.#file = file;
    this.historyFloor = historyFloor;
  }

  async commit(records: readonly CommitRecord[]): Promise<void> {
    const writes = records.map(({ kind, id, revision, value }) => ({
      kind,
      id,
      revision,
      record: value === undefined ? null : encodeRecord(value),
    }));
    const { historyFloor } = await this.#worker.call<CommitAnswer>({ call: 'commit', writes });
    this.historyFloor = historyFloor;
  }

  async history(kind: Kind, after: number, upTo: number): Promise<readonly Commit[]> {
    const rows = await this.#worker.call<readonly HistoryRow[]>({ call: 'history', kind, after, upTo });
    const value = (id: string, record: string | null) => (record === null ? undefined : decode(this.#file, kind, id, record));
    return rows.map(({ revision, id, record, old }) => new Commit(revision, id, value(id, old), value(id, record)));
  }
}

function decode(file: string, kind: Kind, id: string, record: string): ReturnType<typeof decodeRecord> {
  try {
    return decodeRecord(kind, id, record);
  } catch (error) {
    throw new SteadystateError(
      'Corrupt',
      `${file} is damaged: the record of ${kind.type}/${kind.namespace}/${id} cannot be read; restore a backup`,
      { cause: error },
    );
  }
}
