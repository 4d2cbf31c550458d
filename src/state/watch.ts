import type { StateEvent } from './events.ts';

/**
 * An established watch. A change after its promise resolved is seen even before the first `next()`. It ends after
 * `errored`, when its signal aborts (done, no throw), on `break`, or when it is disposed. A reader that is slow or never
 * reads costs bounded memory: it is coalesced.
 */
export interface EventStream<Item> extends AsyncIterable<Item>, AsyncDisposable {
  /** One iterator per watch: a second call throws. `return()` settles at once, also beside a pending `next()`. */
  [Symbol.asyncIterator](): AsyncIterator<Item, undefined, undefined>;
  /**
   * Instead of iterating: calls `handle` with one item after another, and costs a small part of what a turn of `for await`
   * does. What is there is handed over synchronously, timers and input have their turn in between as with `for await`, and a
   * promise that `handle` returns is awaited before the next item. Resolves when the watch has ended and `handle` is done.
   * When `handle` throws or its promise rejects, the watch is closed, and the promise rejects with that error.
   */
  forEach(handle: (item: Item) => unknown): Promise<void>;
  /** `forEach` in batches, also on a watch of single events: what came meanwhile is one batch, at most 1024 events. */
  drain(deliver: (batch: readonly StateEvent[]) => unknown): Promise<void>;
}

export interface Watch<Spec = unknown> extends EventStream<StateEvent<Spec>> {}

export interface AggregatedWatch<Spec = unknown> extends EventStream<readonly StateEvent<Spec>[]> {}
