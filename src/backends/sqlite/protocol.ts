import type { Kind } from '../../resource/index.ts';

/** One write, as it goes to the worker. */
export interface WriteMessage {
  readonly kind: Kind;
  readonly id: string;
  readonly revision: number;
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
  /** Largest size of the file in pages; for tests of a full disk. */
  readonly maxPages: number | undefined;
}

export interface OpenAnswer {
  readonly storeId: string;
  readonly revision: number;
  readonly historyFloor: number;
}

export interface CommitAnswer {
  readonly historyFloor: number;
}

/** A row as it comes from the worker: still text. */
export interface StoredRow {
  readonly kind: Kind;
  readonly id: string;
  readonly record: string;
}

export interface HistoryRow {
  readonly revision: number;
  readonly id: string;
  readonly record: string | null;
  readonly old: string | null;
}

export type WorkerRequest =
  | OpenRequest
  /** Streams all resources as `rows` messages. */
  | { readonly call: 'load' }
  | { readonly call: 'commit'; readonly writes: readonly WriteMessage[] }
  | { readonly call: 'history'; readonly kind: Kind; readonly after: number; readonly upTo: number }
  | { readonly call: 'close' };

export type WorkerMessage =
  | { readonly type: 'rows'; readonly rows: readonly StoredRow[] }
  | { readonly type: 'answer'; readonly sequence: number; readonly value: unknown }
  | { readonly type: 'failure'; readonly sequence: number; readonly failure: WorkerFailure };

/** An error of the worker; made into one of the family on the other side. */
export interface WorkerFailure {
  readonly code: 'Locked' | 'NoSpace' | 'Corrupt' | 'Unavailable' | 'Unsupported';
  readonly message: string;
  readonly holder?: string;
}
