import type { Environment } from '../environment/index.ts';
import { Heap } from './heap.ts';
import type { KeyState } from './key-state.ts';

interface Lane {
  readonly priority: number;
  readonly keys: Heap<KeyState>;
}

/** Empty lanes are kept up to this many, so that a queue of one key makes none anew each time. */
const keptLanes = 8;

/** Keys that may run: one lane per priority, each first come first served. */
export class ReadyKeys {
  readonly #fairness: number;
  /** Highest priority first. */
  #lanes: Lane[] = [];
  #size = 0;
  /** How many keys in a row were taken past a waiting one of lower priority. */
  #passedOver = 0;

  constructor(fairness: number) {
    this.#fairness = fairness;
  }

  get size(): number {
    return this.#size;
  }

  add(state: KeyState, priority: number, order: number): void {
    state.ready = true;
    state.priority = priority;
    state.order = order;
    this.#lane(priority).keys.push(state);
    this.#size++;
  }

  /** Keeps its place in the order of arrival. */
  raise(state: KeyState, priority: number): void {
    if (priority <= state.priority) return;
    this.#lane(state.priority).keys.remove(state);
    state.priority = priority;
    this.#lane(priority).keys.push(state);
  }

  /** The oldest of the highest priority; after a row of those the oldest of all the lower ones. There must be one. */
  next(): KeyState {
    let lane = this.#lanes.find(({ keys }) => keys.size > 0) as Lane;
    if (lane.keys.size === this.#size) this.#passedOver = 0;
    else if (this.#passedOver < this.#fairness) this.#passedOver++;
    else {
      this.#passedOver = 0;
      lane = this.#oldestBelow(lane);
    }
    const state = lane.keys.pop() as KeyState;
    state.ready = false;
    this.#size--;
    return state;
  }

  #oldestBelow(highest: Lane): Lane {
    let found: Lane | undefined;
    let oldest = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes) {
      const first = lane.keys.peek();
      if (lane === highest || first === undefined || first.order > oldest) continue;
      found = lane;
      oldest = first.order;
    }
    return found as Lane;
  }

  #lane(priority: number): Lane {
    let place = 0;
    for (; place < this.#lanes.length; place++) {
      const lane = this.#lanes[place] as Lane;
      if (lane.priority === priority) return lane;
      if (lane.priority < priority) break;
    }
    const lane: Lane = { priority, keys: new Heap((left, right) => left.order < right.order) };
    this.#lanes.splice(place, 0, lane);
    if (this.#lanes.length > keptLanes) this.#lanes = this.#lanes.filter((each) => each === lane || each.keys.size > 0);
    return lane;
  }
}

/** Keys that are due later, with the one timer that they need. */
export class DelayedKeys {
  readonly #environment: Environment;
  readonly #release: (due: readonly KeyState[]) => void;
  readonly #heap = new Heap<KeyState>((left, right) =>
    left.dueAt !== right.dueAt ? (left.dueAt as number) < (right.dueAt as number) : left.order < right.order,
  );
  #timer: { readonly at: number; readonly handle: Disposable } | undefined;
  #stopped = false;

  /** `release` gets what is due, in order: earliest first, equal times first come first served. */
  constructor(environment: Environment, release: (due: readonly KeyState[]) => void) {
    this.#environment = environment;
    this.#release = release;
  }

  get size(): number {
    return this.#heap.size;
  }

  /** What is delayed already moves only earlier, and keeps the higher priority. */
  add(state: KeyState, dueAt: number, priority: number, order: number): void {
    if (state.dueAt !== undefined) {
      state.priority = Math.max(state.priority, priority);
      if (state.dueAt <= dueAt) return;
      this.#heap.remove(state);
    } else state.priority = priority;
    state.dueAt = dueAt;
    state.order = order;
    this.#heap.push(state);
    this.#arm();
  }

  remove(state: KeyState): void {
    if (state.dueAt === undefined) return;
    this.#heap.remove(state);
    state.dueAt = undefined;
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#arm();
  }

  #arm(): void {
    const at = this.#stopped ? undefined : this.#heap.peek()?.dueAt;
    if (at === this.#timer?.at) return;
    this.#timer?.handle[Symbol.dispose]();
    this.#timer = undefined;
    if (at === undefined) return;
    this.#timer = { at, handle: this.#environment.after(at - this.#environment.elapsed(), () => this.#fire()) };
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#environment.elapsed();
    const due: KeyState[] = [];
    for (let first = this.#heap.peek(); first !== undefined && (first.dueAt as number) <= now; first = this.#heap.peek()) {
      this.#heap.pop();
      first.dueAt = undefined;
      due.push(first);
    }
    this.#arm();
    this.#release(due);
  }
}
