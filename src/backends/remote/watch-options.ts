import type { EventSource, WatchKindOptions } from '../../state/index.ts';
import { mapSource } from '../../state/index.ts';
import type { WireWatchOptions } from '../../wire/index.ts';
import { queryToWire } from '../../wire/index.ts';

/** The protocol cannot say `tailEvents: 0`: the present value comes, and is left out here. */
export function withoutFirst(source: EventSource): EventSource {
  let first = true;
  return mapSource(source, (batch) => {
    if (!first) return batch;
    first = false;
    return batch.slice(1);
  });
}

/** More than any store has, and what the protocol can say at most. */
const maximumTail = 2 ** 31 - 1;

export function watchOptions(options: WatchKindOptions): WireWatchOptions {
  const { startFromBookmark } = options;
  return {
    bootstrapContents: options.bootstrapContents ?? false,
    tailEvents: Math.min(options.tailEvents ?? 0, maximumTail),
    ...queryToWire(options),
    aggregated: true,
    bootstrapBookmark: options.bootstrapBookmark ?? false,
    strict: options.strict ?? false,
    caughtUp: false,
    ...(startFromBookmark && { startFromBookmark: startFromBookmark.toUint8Array() }),
  };
}
