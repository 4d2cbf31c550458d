/** Ready keys run by priority (higher first), then first come first served. */
export interface AddOptions {
  /** A key that is there already keeps the higher one. @default 0 */
  readonly priority?: number;
  /** Not before this many milliseconds have passed; a pending delay only moves earlier. @default 0 */
  readonly afterMs?: number;
}

/** One key handed to a worker. Exactly one of its three endings must be called, once; a second call throws. */
export interface QueueItem {
  readonly key: string;
  readonly priority: number;
  /** Consecutive failures of this key so far. */
  readonly failures: number;
  /** How long it was ready before a worker took it, milliseconds. */
  readonly waitedMs: number;
  /** Success: forgets the failures. */
  done(): void;
  /**
   * Success, and run again after a while at the same priority. Each run replaces the requeue of the one before. RangeError,
   * with the item still open, when the delay is no number from 0.
   */
  requeue(afterMs: number): void;
  /** Failure: runs again after its back-off. With `afterMs` after that long instead, and the count stays as it is. */
  fail(options?: { readonly afterMs?: number }): void;
}

export interface QueueOptions {
  /** First back-off of a key, milliseconds; doubled with each failure. @default 5 */
  readonly baseDelayMs?: number;
  /** Largest back-off of a key, milliseconds. @default 60_000 */
  readonly maxDelayMs?: number;
  /** After this many keys of higher priority in a row one of lower priority gets its turn. @default 8 */
  readonly fairness?: number;
  /** Told how many keys are ready and wait for a taker, whenever that has become another number. */
  readonly onReady?: (ready: number) => void;
}

/**
 * A keyed work queue: a key is there at most once and never runs twice at once; a key added while it runs, runs once
 * more. Operations cost O(log n) at most, plus the number of distinct priorities.
 */
export interface KeyedQueue {
  /** RangeError when the priority or the delay is no finite number, or the delay is negative. */
  add(key: string, options?: AddOptions): void;
  /** The next key; waits for one. `undefined` once the queue was shut down or the signal aborted. */
  take(signal?: AbortSignal): Promise<QueueItem | undefined>;
  /** Forgets failures, delays and a pending requeue of a key: its incarnation is gone. A plain add that waits stays. */
  forget(key: string): void;
  /** Keys that are ready or delayed, without those that run. */
  readonly length: number;
  readonly running: number;
  /** Milliseconds until a delayed key is due; `undefined` when it is not delayed. */
  dueInMs(key: string): number | undefined;
  /** Nothing is handed out any more; waiting takers get `undefined`, timers are gone. */
  shutDown(): void;
}
