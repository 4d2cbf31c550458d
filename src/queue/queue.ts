/** Ready items run by priority (higher first), then FIFO. */
export interface AddOptions {
  /** @default 0 */
  readonly priority?: number;
  /** Not before this many milliseconds have passed; a pending delay only moves earlier. @default 0 */
  readonly afterMs?: number;
}

/** One key handed to a worker. Exactly one of its endings must be called, once. */
export interface QueueItem<Key> {
  readonly key: Key;
  readonly priority: number;
  /** Consecutive failures of this key so far. */
  readonly failures: number;
  /** Success: forgets the failures. */
  done(): void;
  /** Success, and run again after a while, at the same priority. Replaces an earlier requeue of this key. */
  requeue(afterMs: number): void;
  /** Failure: runs again after its back-off. `advance: false` uses `afterMs` and leaves the count alone. */
  fail(options?: { readonly afterMs?: number; readonly advance?: boolean }): void;
}

export interface QueueOptions {
  /** First back-off of a key, milliseconds. @default 5 */
  readonly baseDelayMs?: number;
  /** Largest back-off of a key, milliseconds. @default 60_000 */
  readonly maxDelayMs?: number;
  /** After this many items of higher priority one of lower priority gets its turn. @default 8 */
  readonly fairness?: number;
}

/**
 * A keyed work queue: a key is there at most once and never runs twice at once; a key added while it runs runs once
 * more. Operations cost O(log n) at most.
 */
export interface KeyedQueue<Key> {
  add(key: Key, options?: AddOptions): void;
  /** The next item; waits for one. `undefined` once the queue was shut down and is empty of running items' claims. */
  take(signal?: AbortSignal): Promise<QueueItem<Key> | undefined>;
  /** Drops the back-off, delays and pending requeue of a key (its incarnation is gone). */
  forget(key: Key): void;
  /** Ready and delayed keys, without those that run. */
  readonly length: number;
  /** Nothing is handed out any more; waiting takers get `undefined`. */
  shutDown(): void;
}
