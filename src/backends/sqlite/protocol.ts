import type { Kind, Pointer } from '../../resource/index.ts';
import type { GivenRow } from './admin/jobs.ts';
import type { JobRequest } from './admin/start-job.ts';
import type { FileIdentity } from './file-identity.ts';
import type { CommitAnswer } from './packed-commit.ts';

/** One write, as it goes to the worker. */
export interface WriteMessage {
  readonly kind: Kind;
  readonly id: string;
  readonly revision: number;
  /** The incarnation: the revision of its create. */
  readonly uid: number;
  /** Version of the value before; `null`: created. */
  readonly oldVersion: number | null;
  /** `null`: destroyed. */
  readonly record: string | null;
}

export interface OpenRequest {
  readonly call: 'open';
  readonly file: string;
  /** Text that names the opener for whoever comes second. */
  readonly holder: string;
  readonly newStoreId: string;
  readonly historyLimit: number;
  readonly historyAgeMs: number | undefined;
  /** Largest size of the file in pages; for tests of a full disk. */
  readonly maxPages: number | undefined;
}

export interface OpenedStore {
  readonly storeId: string;
  readonly revision: number;
  readonly historyFloor: number;
  /** How many resources it holds, as it says itself. */
  readonly count: number;
}

export interface OpenAnswer extends OpenedStore {
  readonly identities: readonly FileIdentity[];
}

/** Some resources as they come from the worker, all in one buffer (see `packed-rows.ts`). */
export interface RowsMessage {
  readonly type: 'rows';
  /** All of them, with the first message. */
  readonly kinds: readonly (readonly [number: number, kind: Kind])[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A resource that was looked for before all were read, still encoded. */
export interface FoundRow {
  readonly pointer: Pointer;
  readonly uid: number;
  readonly version: number;
  readonly record: string;
}

/** One value, still encoded. */
export interface StoredValue {
  readonly version: number;
  readonly record: string;
}

export interface HistoryRow {
  readonly revision: number;
  readonly uid: number;
  readonly id: string;
  readonly value: StoredValue | undefined;
  readonly old: StoredValue | undefined;
}

export type WorkerRequest =
  | OpenRequest
  /** Streams all resources as `rows` messages; other calls come between them. */
  | { readonly call: 'load' }
  /** Looks for resources by walking over all, which is much faster than to load them. Answers a list of `FoundRow`. */
  | { readonly call: 'find'; readonly pointers: readonly Pointer[] }
  | { readonly call: 'history'; readonly kind: Kind; readonly after: number; readonly upTo: number }
  /** Begins a work that goes on in steps, on the open store or, for those that need none, on a file; answers its number. */
  | { readonly call: 'start'; readonly job: JobRequest }
  | { readonly call: 'step'; readonly job: number; readonly rows?: readonly GivenRow[] }
  | { readonly call: 'end'; readonly job: number }
  | { readonly call: 'close' };

export type WorkerMessage =
  | CommitAnswer
  | RowsMessage
  | { readonly type: 'answer'; readonly sequence: number; readonly value: unknown }
  /** The disk failed while nobody waited for it: the store takes no more writes. */
  | { readonly type: 'stopped'; readonly failure: WorkerFailure }
  | { readonly type: 'failure'; readonly sequence: number; readonly failure: WorkerFailure };

/** An error of the worker; made into one of the family on the other side. */
export interface WorkerFailure {
  readonly code: 'Locked' | 'NoSpace' | 'Corrupt' | 'Unavailable' | 'Ambiguous' | 'Unsupported';
  readonly message: string;
  readonly holder?: string;
}
