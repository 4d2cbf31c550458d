import type { Pointer, Resource } from '../../resource/index.ts';
import { findError, pointerText, SteadystateError } from '../../resource/index.ts';
import { ambiguous, unavailable } from '../../state/index.ts';
import type { Collection, Entry, StagedWrite } from './collection.ts';
import { Commit } from './commit.ts';
import type { CommitRecord, Committer } from './committer.ts';
import type { Kinds } from './kinds.ts';
import { orAborted } from './or-aborted.ts';

interface StagedRecord extends CommitRecord {
  readonly collection: Collection;
  readonly mark: StagedWrite;
}

/** Writes that become durable together. */
interface Batch {
  readonly records: StagedRecord[];
  /** Never rejects: the failure is its value, and every writer words it for itself. */
  readonly settled: Promise<SteadystateError | undefined>;
  readonly settle: (failure: SteadystateError | undefined) => void;
  /** It went to the disk. */
  submitted: boolean;
}

/** What the queue tells its broker. */
export interface CommitQueueHost {
  readonly kinds: Kinds;
  /** A commit is durable: readers may see it. */
  apply(collection: Collection, commit: Commit): void;
  /** A batch was applied: watchers may be told. */
  deliver(): void;
  /** A batch failed without leaving the disk in doubt: its revisions are free again. */
  rolledBack(): void;
  /** A batch failed, and what is on disk is not known. */
  poison(error: SteadystateError): void;
}

/** Makes writes durable, group by group: while one batch syncs, the next is staged. */
export class CommitQueue {
  readonly #committer: Committer;
  readonly #host: CommitQueueHost;
  #open: Batch | undefined;
  #committing: Promise<void> | undefined;
  /** The last batch that made the store grow found no room. */
  #full = false;

  constructor(committer: Committer, host: CommitQueueHost) {
    this.#committer = committer;
    this.#host = host;
  }

  /**
   * Whether a write that makes the store grow should wait for `drained`: without room it would take those down that share its batch,
   * and among them a destroy that makes room.
   */
  get crowded(): boolean {
    return this.#full && this.#committing !== undefined;
  }

  /** Settles once nothing is on its way. */
  async drained(): Promise<void> {
    await this.#committing?.catch(() => {});
  }

  /** Puts a write on top of what is staged; settles with its fate. */
  stage(
    collection: Collection,
    entry: Entry,
    revision: number,
    old: Resource | undefined,
    value: Resource | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Resource | undefined> {
    this.#open ??= makeBatch();
    const batch = this.#open;
    const mark: StagedWrite = { value, settled: batch.settled };
    entry.staged = mark;
    batch.records.push({ kind: collection.kind, revision, id: entry.id, value, old, collection, mark });
    this.#committing ??= this.#commitAll();
    const pointer = { ...collection.kind, id: entry.id };
    const done = batch.settled.then((failure) => {
      if (failure === undefined) return value;
      throw batch.submitted ? about(failure, pointer) : refusal(failure, pointer);
    });
    // A write on its way is not called back: an abort only ends the waiting.
    return orAborted(done, signal, ({ reason }) => ambiguous(pointer, 'the caller stopped waiting', reason));
  }

  /** One batch after another: while one syncs, the next is staged. */
  async #commitAll(): Promise<void> {
    try {
      // Callers of one turn share the first batch.
      await Promise.resolve();
      while (this.#open !== undefined) {
        const batch = this.#open;
        this.#open = undefined;
        batch.submitted = true;
        try {
          await this.#committer.commit(batch.records);
        } catch (error) {
          this.#fail(batch, error);
          continue;
        }
        if (this.#full && batch.records.some(grows)) this.#full = false;
        for (const record of batch.records) {
          this.#unstage(record);
          this.#host.apply(record.collection, new Commit(record.revision, record.id, record.old, record.value));
        }
        this.#host.deliver();
        batch.settle(undefined);
        // Who was just acknowledged may write again: one sync for all is better than two groups that take turns.
        for (let turn = 0; turn < turnsToJoin && this.#open !== undefined; turn++) await undefined;
      }
    } finally {
      this.#committing = undefined;
    }
  }

  #unstage({ collection, id, mark }: StagedRecord): void {
    const entry = collection.entries.get(id);
    if (entry?.staged === mark) entry.staged = undefined;
  }

  /** Readers never saw a failed batch; what was staged on top of it falls with it. */
  #fail(batch: Batch, cause: unknown): void {
    const error = findError(cause) ?? unavailable('the store could not write', cause);
    const later = this.#open;
    this.#open = undefined;
    const failed = later === undefined ? [batch] : [batch, later];
    for (const { records } of failed) {
      for (const { collection, id } of records) {
        const entry = collection.entries.get(id);
        if (entry === undefined) continue;
        entry.staged = undefined;
        collection.release(entry);
        this.#host.kinds.release(collection);
      }
    }
    // Without room nothing was written, and reading and destroying go on. Any other failure leaves the disk in doubt.
    if (error.code === 'NoSpace') {
      this.#full = true;
      this.#host.rolledBack();
    } else this.#host.poison(refusal(error, undefined));
    for (const { settle } of failed) settle(error);
  }
}

function grows({ value }: CommitRecord): boolean {
  return value !== undefined;
}

/** Microtasks from an acknowledgement to the next write of the same caller, with some wrappers in between. */
const turnsToJoin = 16;

function makeBatch(): Batch {
  let settle = (_failure: SteadystateError | undefined): void => {};
  const settled = new Promise<SteadystateError | undefined>((resolve) => {
    settle = resolve;
  });
  return { records: [], settled, settle, submitted: false };
}

/** The failure of a batch, told to the writer of one of its resources. */
function about(failure: SteadystateError, pointer: Pointer): SteadystateError {
  return new SteadystateError(failure.code, `${pointerText(pointer)}: ${failure.message}`, { pointer, cause: failure });
}

/** The same for a write that never went out: nothing about it is in doubt. */
export function refusal(failure: SteadystateError, pointer: Pointer | undefined): SteadystateError {
  if (failure.code !== 'Ambiguous') return pointer === undefined ? failure : about(failure, pointer);
  const text = `the store stopped after a failed write: ${failure.message}`;
  return new SteadystateError('Unavailable', pointer === undefined ? text : `${pointerText(pointer)}: ${text}`, {
    ...(pointer && { pointer }),
    cause: failure.cause,
  });
}
