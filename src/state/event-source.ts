import type { StateEvent } from './events.ts';

/**
 * Where a watch's events come from: the seam between a backend's delivery and the iterators that stand on it.
 * Synchronous, so that nothing can happen between looking and taking. What is not taken stays with the backend, which
 * bounds it.
 */
export interface EventSource {
  /** At most `max` events, in order; empty when there is none now. */
  take(max: number): readonly StateEvent[];
  /** Calls back, once per call of this, when `take` may give something or the source has ended. At once if it already may. */
  whenReady(callback: () => void): void;
  /** Nothing more will come. `take` may still give what is left. */
  readonly ended: boolean;
  /** Gives up what is left. Idempotent. */
  close(): void;
}

/** A source whose batches go through `map` (which may drop, change or add events). */
export function mapSource(source: EventSource, map: (batch: readonly StateEvent[]) => readonly StateEvent[]): EventSource {
  return {
    take(max) {
      for (;;) {
        const taken = source.take(max);
        if (taken.length === 0) return taken;
        const mapped = map(taken);
        if (mapped.length > 0) return mapped;
      }
    },
    whenReady: (callback) => source.whenReady(callback),
    get ended() {
      return source.ended;
    },
    close: () => source.close(),
  };
}
