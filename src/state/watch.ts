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
   * Instead of iterating: hands what is there to `deliver`, synchronously and in batches, as soon as it is there. Resolves
   * when the watch has ended. When `deliver` throws, the watch is closed and the promise rejects with that error.
   */
  drain(deliver: (batch: readonly StateEvent[]) => void): Promise<void>;
}

export interface Watch<Spec = unknown> extends EventStream<StateEvent<Spec>> {}

export interface AggregatedWatch<Spec = unknown> extends EventStream<readonly StateEvent<Spec>[]> {}
