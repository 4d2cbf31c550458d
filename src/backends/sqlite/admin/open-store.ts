import type { Database } from '../driver.ts';
import type { Head } from '../head.ts';
import type { WriteMessage } from '../protocol.ts';
import type { KindRow } from '../store-file.ts';

/** A store that can be read, in the thread that has it open. */
export interface OpenStore {
  readonly file: string;
  readonly database: Database;
  head(): Head;
  kinds(): readonly KindRow[];
  /** Calls back after each commit; absent where nobody writes. */
  onCommit?(listen: (writes: readonly WriteMessage[]) => void): Disposable;
}

/** A store that is also written here. */
export interface OwnedStore extends OpenStore {
  /** Drops the events up to a revision, in a commit of its own. */
  forget(upTo: number): void;
  /** Does something to the file that is a commit of its own. */
  change(work: () => void): void;
  /** Sees to the room after such a change: the write-ahead log stays within bounds. */
  afterChange(): void;
  /** Folds the write-ahead log into the file as far as that is possible now. */
  fold(): void;
  /** The disk is full: gives up what is held for that. */
  makeRoom(): void;
}
