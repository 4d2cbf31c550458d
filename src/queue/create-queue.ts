import { addAbortListener } from 'node:events';
import type { Environment } from '../environment/index.ts';
import { Heap } from './heap.ts';
import type { AddOptions, KeyedQueue, QueueItem, QueueOptions } from './queue.ts';

interface KeyState {
  readonly key: string;
  priority: number;
  /** Order of arrival among ready keys of one priority, or among equal due times. */
  order: number;
  failures: number;
  /** When a delayed run is due, on elapsed time; `undefined`: none. */
  dueAt: number | undefined;
  /** The deadline of a back-off that an event has run ahead of. */
  keptDueAt: number | undefined;
  ready: boolean;
  running: boolean;
  /** Added while running. */
  dirty: boolean;
  dirtyPriority: number;
  heapPlace: number;
}

interface Taker {
  readonly resolve: (item: QueueItem | undefined) => void;
  listener: Disposable | undefined;
}

/** A keyed work queue on an environment's clock. */
export function createQueue(environment: Environment, options: QueueOptions = {}): KeyedQueue {
  return new Queue(environment, options);
}

class Queue implements KeyedQueue {
  readonly #environment: Environment;
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #fairness: number;
  readonly #keys = new Map<string, KeyState>();
  /** Ready keys, a heap by order of arrival for each priority. Few priorities are in use. */
  readonly #ready = new Map<number, Heap<KeyState>>();
  readonly #delayed = new Heap<KeyState>((left, right) =>
    left.dueAt !== right.dueAt ? (left.dueAt as number) < (right.dueAt as number) : left.order < right.order,
  );
  readonly #takers: Taker[] = [];
  #order = 0;
  #running = 0;
  #readyCount = 0;
  /** How many keys in a row were taken past a waiting one of lower priority. */
  #passedOver = 0;
  #timer: { readonly at: number; readonly handle: Disposable } | undefined;
  #shutDown = false;

  constructor(environment: Environment, options: QueueOptions) {
    this.#environment = environment;
    this.#baseDelayMs = options.baseDelayMs ?? 5;
    this.#maxDelayMs = options.maxDelayMs ?? 60_000;
    this.#fairness = options.fairness ?? 8;
  }

  get length(): number {
    return this.#readyCount + this.#delayed.size;
  }

  get running(): number {
    return this.#running;
  }

  add(key: string, { priority = 0, afterMs = 0 }: AddOptions = {}): void {
    if (this.#shutDown) return;
    const state = this.#claim(key, priority);
    if (afterMs > 0) return this.#delay(state, afterMs, priority);
    if (state.running) {
      state.dirtyPriority = state.dirty ? Math.max(state.dirtyPriority, priority) : priority;
      state.dirty = true;
      return;
    }
    this.#makeReady(state, priority);
    this.#serve();
  }

  take(signal?: AbortSignal): Promise<QueueItem | undefined> {
    if (this.#shutDown || signal?.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const taker: Taker = { resolve, listener: undefined };
      if (signal !== undefined) {
        taker.listener = addAbortListener(signal, () => {
          const place = this.#takers.indexOf(taker);
          if (place < 0) return;
          this.#takers.splice(place, 1);
          taker.listener?.[Symbol.dispose]();
          resolve(undefined);
        });
      }
      this.#takers.push(taker);
      this.#serve();
    });
  }

  forget(key: string): void {
    const state = this.#keys.get(key);
    if (state === undefined) return;
    state.failures = 0;
    state.keptDueAt = undefined;
    if (state.dueAt !== undefined) {
      this.#delayed.remove(state);
      state.dueAt = undefined;
      this.#arm();
    }
    this.#drop(state);
  }

  dueInMs(key: string): number | undefined {
    const dueAt = this.#keys.get(key)?.dueAt;
    return dueAt === undefined ? undefined : Math.max(0, dueAt - this.#environment.elapsed());
  }

  shutDown(): void {
    this.#shutDown = true;
    this.#timer?.handle[Symbol.dispose]();
    this.#timer = undefined;
    for (const taker of this.#takers.splice(0)) {
      taker.listener?.[Symbol.dispose]();
      taker.resolve(undefined);
    }
  }

  #claim(key: string, priority: number): KeyState {
    let state = this.#keys.get(key);
    if (state === undefined) {
      state = {
        key,
        priority,
        order: 0,
        failures: 0,
        dueAt: undefined,
        keptDueAt: undefined,
        ready: false,
        running: false,
        dirty: false,
        dirtyPriority: priority,
        heapPlace: -1,
      };
      this.#keys.set(key, state);
    }
    return state;
  }

  /** A key is remembered only while something is known of it. */
  #drop(state: KeyState): void {
    if (!state.ready && !state.running && state.dueAt === undefined && state.failures === 0) this.#keys.delete(state.key);
  }

  #makeReady(state: KeyState, priority: number): void {
    if (state.ready) {
      if (priority <= state.priority) return;
      this.#heap(state.priority).remove(state);
      this.#readyCount--;
    } else state.order = this.#order++;
    state.ready = true;
    state.priority = priority;
    if (state.dueAt !== undefined) {
      this.#delayed.remove(state);
      if (state.failures > 0) state.keptDueAt = state.dueAt;
      state.dueAt = undefined;
      this.#arm();
    }
    this.#heap(priority).push(state);
    this.#readyCount++;
  }

  #heap(priority: number): Heap<KeyState> {
    let heap = this.#ready.get(priority);
    if (heap === undefined) {
      heap = new Heap((left, right) => left.order < right.order);
      this.#ready.set(priority, heap);
    }
    return heap;
  }

  #delay(state: KeyState, afterMs: number, priority: number): void {
    if (state.ready) return this.#makeReady(state, priority);
    const dueAt = this.#environment.elapsed() + afterMs;
    if (state.dueAt !== undefined) {
      if (state.dueAt <= dueAt) {
        state.priority = Math.max(state.priority, priority);
        return;
      }
      this.#delayed.remove(state);
    } else if (!state.running) state.priority = priority;
    state.dueAt = dueAt;
    state.order = this.#order++;
    this.#delayed.push(state);
    this.#arm();
  }

  #arm(): void {
    const first = this.#delayed.peek();
    if (first?.dueAt === this.#timer?.at && (first === undefined) === (this.#timer === undefined)) return;
    this.#timer?.handle[Symbol.dispose]();
    this.#timer = undefined;
    if (first === undefined || this.#shutDown) return;
    const at = first.dueAt as number;
    this.#timer = {
      at,
      handle: this.#environment.after(at - this.#environment.elapsed(), () => {
        this.#timer = undefined;
        this.#release();
      }),
    };
  }

  #release(): void {
    const now = this.#environment.elapsed();
    for (let first = this.#delayed.peek(); first !== undefined && (first.dueAt as number) <= now; first = this.#delayed.peek()) {
      this.#delayed.pop();
      first.dueAt = undefined;
      if (first.running) {
        first.dirtyPriority = first.dirty ? Math.max(first.dirtyPriority, first.priority) : first.priority;
        first.dirty = true;
      } else this.#makeReady(first, first.priority);
    }
    this.#arm();
    this.#serve();
  }

  #serve(): void {
    while (this.#takers.length > 0 && this.#readyCount > 0 && !this.#shutDown) {
      const state = this.#next();
      const taker = this.#takers.shift() as Taker;
      taker.listener?.[Symbol.dispose]();
      taker.resolve(this.#start(state));
    }
  }

  /** The oldest key of the highest priority; after `fairness` of those in a row, the oldest of the next lower one. */
  #next(): KeyState {
    const priorities = [...this.#ready.keys()].filter((priority) => this.#heap(priority).size > 0).sort((left, right) => right - left);
    for (const priority of this.#ready.keys()) if (this.#heap(priority).size === 0) this.#ready.delete(priority);
    let chosen = priorities[0] as number;
    if (priorities.length > 1) {
      if (this.#passedOver >= this.#fairness) {
        // The one that has waited longest among all lower priorities.
        chosen = priorities
          .slice(1)
          .reduce((best, priority) =>
            (this.#heap(priority).peek() as KeyState).order < (this.#heap(best).peek() as KeyState).order ? priority : best,
          );
        this.#passedOver = 0;
      } else this.#passedOver++;
    } else this.#passedOver = 0;
    const state = this.#heap(chosen).pop() as KeyState;
    this.#readyCount--;
    return state;
  }

  #start(state: KeyState): QueueItem {
    state.ready = false;
    state.running = true;
    this.#running++;
    const { keptDueAt } = state;
    state.keptDueAt = undefined;
    const { key, priority, failures } = state;
    let ended = false;
    const end = (finish: () => void): void => {
      if (ended) throw new Error(`the key ${key} was already finished`);
      ended = true;
      state.running = false;
      this.#running--;
      if (!this.#shutDown) {
        finish();
        if (state.dirty) {
          state.dirty = false;
          this.#makeReady(state, state.dirtyPriority);
        }
        this.#drop(state);
        this.#serve();
      }
    };
    return {
      key,
      priority,
      failures,
      done: () =>
        end(() => {
          state.failures = 0;
        }),
      requeue: (afterMs) =>
        end(() => {
          state.failures = 0;
          this.#again(state, afterMs, priority);
        }),
      fail: ({ afterMs } = {}) =>
        end(() => {
          if (afterMs !== undefined) return this.#again(state, afterMs, priority);
          const waiting = keptDueAt !== undefined && keptDueAt > this.#environment.elapsed();
          // An event may run a key inside its back-off: a failure then keeps the deadline and the count.
          if (waiting) return this.#again(state, keptDueAt - this.#environment.elapsed(), priority);
          const delayMs = Math.min(this.#baseDelayMs * 2 ** state.failures, this.#maxDelayMs);
          state.failures++;
          this.#again(state, delayMs, priority);
        }),
    };
  }

  #again(state: KeyState, afterMs: number, priority: number): void {
    if (afterMs <= 0) this.#makeReady(state, priority);
    else this.#delay(state, afterMs, priority);
  }
}
