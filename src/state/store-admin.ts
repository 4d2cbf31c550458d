import type { Resource } from '../resource/index.ts';

/** How far a long work on a store is. */
export interface StoreProgress {
  /** What is being done, for people. */
  readonly step: string;
  readonly done: number;
  /** 0: not known. */
  readonly total: number;
}

export interface StoreTaskOptions {
  /** Ends the work between two steps; what it had made is taken away again. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: StoreProgress) => void) | undefined;
}

/** One thing that is wrong with a store. */
export interface StoreFinding {
  /** What it is about: `file`, `head`, `events`, `event 17`, `side file`, or the name of a resource. */
  readonly place: string;
  readonly message: string;
}

/** What a look at all of a store found. */
export interface StoreCheck {
  /** Everything that is wrong, in the order of the look; empty: the store is right. */
  readonly findings: readonly StoreFinding[];
  /** How many more there were than are listed. */
  readonly more: number;
  readonly storeId: string;
  readonly format: number;
  readonly revision: number;
  /** Everything at or below this revision is no longer in the event log. */
  readonly floor: number;
  /** How many were found to be intact. */
  readonly resources: number;
  readonly events: number;
  /** Size of the file, and how much of it is free. */
  readonly bytes: number;
  readonly freeBytes: number;
}

export interface StoreCheckOptions extends StoreTaskOptions {
  /**
   * Leaves out SQLite's own look at its pages. Everything else goes in small steps; that one goes in one, and writers of an
   * open store wait for it, about a second for each gigabyte. @default false
   */
  readonly quick?: boolean;
}

export interface StoreCompactOptions extends StoreTaskOptions {
  /** How many events stay at least. With `olderThanMs` too, an event goes only if both let it go. @default all */
  readonly keep?: number;
  /** Only events older than this go, milliseconds. */
  readonly olderThanMs?: number;
}

export interface StoreCompaction {
  /** How many events went. */
  readonly forgotten: number;
  readonly floor: number;
  readonly revision: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

export interface StoreBackupOptions extends StoreTaskOptions {
  /** Replaces an older backup that is there; never another file. @default false */
  readonly force?: boolean;
}

export interface StoreBackup {
  /** The absolute path that was written. */
  readonly file: string;
  readonly resources: number;
  /** The revision of the store that the backup holds. */
  readonly revision: number;
  readonly bytes: number;
}

/** Looking after a store, open or not, beside everything else that it does. */
export interface StoreAdmin {
  /** Looks at everything; changes nothing. What is wrong is in the answer; it rejects only where looking is not possible. */
  check(options?: StoreCheckOptions): Promise<StoreCheck>;
  /**
   * Drops old events and gives free room back to the file system. Watches go on; a bookmark from before the new floor is
   * InvalidBookmark from then on.
   */
  compact(options?: StoreCompactOptions): Promise<StoreCompaction>;
  /**
   * Writes all resources, as they are at one revision, into a store file of their own, which is there only once it is whole
   * and on disk. Conflict (`alreadyExists`) when `file` is there and `force` is not given, Corrupt when the store is damaged.
   */
  backup(file: string, options?: StoreBackupOptions): Promise<StoreBackup>;
  /** All resources at one revision, in the order of their creation; few at a time are held in memory. */
  export(options?: StoreTaskOptions): AsyncIterable<Resource>;
}
