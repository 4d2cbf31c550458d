import { addAbortListener } from 'node:events';
import type { Environment } from '../environment/index.ts';
import type { KeyState } from './key-state.ts';
import { newKeyState } from './key-state.ts';
import { DelayedKeys, ReadyKeys } from './lanes.ts';
import type { AddOptions, KeyedQueue, QueueItem, QueueOptions } from './queue.ts';

/** More doublings than these end at no number at all: nothing, doubled without end, is no wait. */
const maxDoublings = 1_000;

interface Taker {
  readonly resolve: (item: QueueItem | undefined) => void;
  listener: Disposable | undefined;
}

/** A keyed work queue on an environment's clock. RangeError when an option is no good. */
export function createQueue(environment: Environment, options: QueueOptions = {}): KeyedQueue {
  const { baseDelayMs = 5, maxDelayMs = 60_000, fairness = 8, onReady } = options;
  checkNumber('baseDelayMs', baseDelayMs, 0);
  checkNumber('maxDelayMs', maxDelayMs, 0);
  checkNumber('fairness', fairness, 1);
  return new Queue(environment, baseDelayMs, maxDelayMs, fairness, onReady);
}

function checkNumber(name: string, value: number, least: number): void {
  if (!Number.isFinite(value) || value < least) throw new RangeError(`${name} must be a finite number from ${least}, found ${value}`);
}

class Queue implements KeyedQueue {
  readonly #environment: Environment;
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #keys = new Map<string, KeyState>();
  readonly #ready: ReadyKeys;
  readonly #delayed: DelayedKeys;
  readonly #takers: Taker[] = [];
  readonly #onReady: QueueOptions['onReady'];
  #toldReady = 0;
  #order = 0;
  #running = 0;
  #shutDown = false;

  constructor(environment: Environment, baseDelayMs: number, maxDelayMs: number, fairness: number, onReady: QueueOptions['onReady']) {
    this.#environment = environment;
    this.#onReady = onReady;
    this.#baseDelayMs = baseDelayMs;
    this.#maxDelayMs = maxDelayMs;
    this.#ready = new ReadyKeys(fairness);
    this.#delayed = new DelayedKeys(environment, (due) => this.#release(due));
  }

  get length(): number {
    return this.#ready.size + this.#delayed.size;
  }

  get running(): number {
    return this.#running;
  }

  add(key: string, { priority = 0, afterMs = 0 }: AddOptions = {}): void {
    checkNumber('afterMs', afterMs, 0);
    if (!Number.isFinite(priority)) throw new RangeError(`priority must be a finite number, found ${priority}`);
    if (this.#shutDown) return;
    let state = this.#keys.get(key);
    if (state === undefined) {
      state = newKeyState(key);
      this.#keys.set(key, state);
    }
    this.#again(state, afterMs, priority);
    this.#serve();
  }

  take(signal?: AbortSignal): Promise<QueueItem | undefined> {
    if (this.#shutDown || signal?.aborted) return Promise.resolve(undefined);
    if (this.#takers.length === 0 && this.#ready.size > 0) {
      const item = this.#start(this.#ready.next());
      this.#tellReady(this.#ready.size);
      return Promise.resolve(item);
    }
    return new Promise((resolve) => {
      const taker: Taker = { resolve, listener: undefined };
      if (signal !== undefined) {
        taker.listener = addAbortListener(signal, () => {
          taker.listener?.[Symbol.dispose]();
          const place = this.#takers.indexOf(taker);
          if (place < 0) return;
          this.#takers.splice(place, 1);
          resolve(undefined);
        });
      }
      this.#takers.push(taker);
    });
  }

  forget(key: string): void {
    const state = this.#keys.get(key);
    if (state === undefined) return;
    state.failures = 0;
    state.backOffUntil = undefined;
    this.#delayed.remove(state);
    this.#drop(state);
  }

  dueInMs(key: string): number | undefined {
    const dueAt = this.#keys.get(key)?.dueAt;
    return dueAt === undefined ? undefined : Math.max(0, dueAt - this.#environment.elapsed());
  }

  shutDown(): void {
    this.#shutDown = true;
    this.#delayed.stop();
    this.#tellReady(0);
    for (const taker of this.#takers.splice(0)) {
      taker.listener?.[Symbol.dispose]();
      taker.resolve(undefined);
    }
  }

  /** A worker is through with a key. */
  #end(state: KeyState, finish: () => void): void {
    state.running = false;
    this.#running--;
    if (this.#shutDown) return;
    finish();
    if (state.dirty) {
      state.dirty = false;
      this.#makeReady(state, state.dirtyPriority);
    }
    this.#drop(state);
    this.#serve();
  }

  #succeed(state: KeyState): void {
    state.failures = 0;
    state.backOffUntil = undefined;
  }

  #fail(state: KeyState, priority: number): void {
    const now = this.#environment.elapsed();
    // An event may run a key inside its back-off: a failure then keeps the deadline and the count.
    if (state.backOffUntil === undefined || state.backOffUntil <= now) {
      state.backOffUntil = now + Math.min(this.#baseDelayMs * 2 ** Math.min(state.failures, maxDoublings), this.#maxDelayMs);
      state.failures++;
    }
    this.#again(state, state.backOffUntil - now, priority);
  }

  /** Its own interval is no back-off: neither the count nor a deadline comes of it. */
  #failAfter(state: KeyState, afterMs: number, priority: number): void {
    state.backOffUntil = undefined;
    this.#again(state, afterMs, priority);
  }

  /** A key is remembered only while something is known of it. */
  #drop(state: KeyState): void {
    if (!state.ready && !state.running && state.dueAt === undefined && state.failures === 0) this.#keys.delete(state.key);
  }

  #again(state: KeyState, afterMs: number, priority: number): void {
    if (afterMs <= 0) this.#makeReady(state, priority);
    else if (state.ready) this.#ready.raise(state, priority);
    else this.#delayed.add(state, this.#environment.elapsed() + afterMs, priority, this.#order++);
  }

  #makeReady(state: KeyState, priority: number): void {
    if (state.running) {
      state.dirtyPriority = state.dirty ? Math.max(state.dirtyPriority, priority) : priority;
      state.dirty = true;
    } else if (state.ready) {
      this.#ready.raise(state, priority);
    } else {
      // A duplicate takes the higher priority and the earlier time.
      const highest = state.dueAt === undefined ? priority : Math.max(priority, state.priority);
      this.#delayed.remove(state);
      state.readySince = this.#environment.elapsed();
      this.#ready.add(state, highest, this.#order++);
    }
  }

  #release(due: readonly KeyState[]): void {
    for (const state of due) this.#makeReady(state, state.priority);
    this.#serve();
  }

  #serve(): void {
    while (this.#takers.length > 0 && this.#ready.size > 0 && !this.#shutDown) {
      const taker = this.#takers.shift() as Taker;
      taker.listener?.[Symbol.dispose]();
      taker.resolve(this.#start(this.#ready.next()));
    }
    if (!this.#shutDown) this.#tellReady(this.#ready.size);
  }

  #tellReady(ready: number): void {
    if (ready === this.#toldReady) return;
    this.#toldReady = ready;
    this.#onReady?.(ready);
  }

  #start(state: KeyState): QueueItem {
    state.running = true;
    this.#running++;
    const { key, priority, failures } = state;
    const waitedMs = this.#environment.elapsed() - state.readySince;
    let ended = false;
    const end = (finish: () => void): void => {
      if (ended) throw new Error(`the key ${key} was already finished`);
      ended = true;
      this.#end(state, finish);
    };
    return {
      key,
      priority,
      failures,
      waitedMs,
      done: () => end(() => this.#succeed(state)),
      requeue: (afterMs) => {
        checkNumber('afterMs', afterMs, 0);
        end(() => {
          this.#succeed(state);
          this.#again(state, afterMs, priority);
        });
      },
      fail: ({ afterMs } = {}) => {
        if (afterMs !== undefined) checkNumber('afterMs', afterMs, 0);
        end(() => (afterMs === undefined ? this.#fail(state, priority) : this.#failAfter(state, afterMs, priority)));
      },
    };
  }
}
