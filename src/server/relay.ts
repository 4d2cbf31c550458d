import type { Kind } from '../resource/index.ts';
import { findError } from '../resource/index.ts';
import type { AggregatedWatch, Bookmark, EventSource, StateEvent, Watch } from '../state/index.ts';
import { sourceOf, unavailable } from '../state/index.ts';
import { encodeEvent } from '../wire/index.ts';
import type { HandlerContext } from './context.ts';
import { itemsFrame, makeFrames } from './frame-cache.ts';
import type { ServerCall } from './grpc/server-call.ts';

/** Most events taken from the store before the client is asked whether it reads. */
const eventsPerTake = 128;
/** Events sent before other calls get their turn. */
const eventsPerBreath = 512;
/** A batch is sent when it is this large, bytes: far below the 4 MiB that Go clients take, so that little waits for a client that stalls. */
const batchBytes = 256 * 1024;

export interface RelayOptions {
  readonly aggregated: boolean;
  readonly apiVersion: number;
  /** Whether bare bookmarks are sent. */
  readonly noops: boolean;
  /** Where the watch goes on from, when the client asks to be told that it has caught up. */
  readonly caughtUpFrom?: Bookmark | undefined;
}

/**
 * Sends a watch over a stream. Events are taken from the store only while the client reads, so that one that does not
 * costs what a lagging watcher costs, and nothing here. Resolves when the watch or the call has ended.
 */
export function relay(
  { environment, codec, frames, turns }: HandlerContext,
  call: ServerCall,
  watch: AggregatedWatch | Watch,
  kind: Kind,
  options: RelayOptions,
): Promise<undefined> {
  const source = readable(watch);
  const framing = options.aggregated ? 'together' : 'apart';
  return new Promise<undefined>((resolve, reject) => {
    let sinceBreath = 0;
    let events: readonly StateEvent[] = [];
    let next = 0;
    let caughtUp = options.caughtUpFrom === undefined;
    let bookmark = options.caughtUpFrom;
    const pump = (): void => {
      try {
        for (;;) {
          if (call.cancelled) return resolve(undefined);
          if (call.blocked) return call.whenUnblocked(pump);
          if (sinceBreath >= eventsPerBreath) {
            sinceBreath = 0;
            return void environment.breathe().then(pump);
          }
          if (next === events.length) {
            events = source.take(eventsPerTake);
            next = 0;
            if (events.length === 0) {
              if (source.ended) return resolve(undefined);
              if (!caughtUp) {
                caughtUp = true;
                call.send(itemsFrame([encodeEvent({ type: 'noop', ...(bookmark && { bookmark }) }, kind, codec)]));
                continue;
              }
              return source.whenReady(once(() => turns.next(pump)));
            }
          }
          const before = next;
          sendSome();
          sinceBreath += next - before;
        }
      } catch (error) {
        reject(error);
      }
    };
    /** As many of the events as one message may hold, or as many messages of one event each: in one piece. */
    const sendSome = (): void => {
      const batch: Buffer[] = [];
      let size = 0;
      // Contents are made for each watch; the frames of what all watches are sent must not go for them.
      const isShared = events[next]?.bookmark !== undefined;
      while (next < events.length) {
        const event = events[next] as StateEvent;
        // Who does not know the message for it is told by the status.
        if (event.type === 'errored' && options.apiVersion < 1) throw event.error;
        const bytes = wanted(event, options) ? encodeEvent(event, kind, codec) : undefined;
        if (bytes !== undefined && batch.length > 0 && size + bytes.length > batchBytes) break;
        next++;
        if (event.bookmark !== undefined) bookmark = event.bookmark;
        if (bytes === undefined) continue;
        batch.push(bytes);
        size += bytes.length;
      }
      if (batch.length > 0) call.send(isShared ? frames.get(batch, framing) : makeFrames(batch, framing));
    };
    // Established: clients wait for this.
    call.send(itemsFrame([]));
    pump();
  }).finally(() => source.close());
}

function wanted(event: StateEvent, { apiVersion, noops }: RelayOptions): boolean {
  if (event.type === 'noop') return noops;
  return apiVersion >= 1 || event.type !== 'bootstrapped';
}

/** A source may call back from a close and from an event. */
function once(callback: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    callback();
  };
}

function readable(watch: AggregatedWatch | Watch): EventSource {
  try {
    return sourceOf(watch);
  } catch {
    // A store that makes its watches in its own way can be iterated only.
    return iterated(watch);
  }
}

/** A source over a watch that can only be iterated: one item is read ahead. */
export function iterated(watch: AggregatedWatch | Watch): EventSource {
  const iterator = watch[Symbol.asyncIterator]() as AsyncIterator<StateEvent | readonly StateEvent[], undefined>;
  let ready: readonly StateEvent[] = [];
  let ended = false;
  let reading = false;
  let callbacks: (() => void)[] = [];
  const wake = (): void => {
    reading = false;
    const waiting = callbacks;
    callbacks = [];
    for (const callback of waiting) callback();
  };
  const read = (): void => {
    if (reading || ended) return;
    reading = true;
    iterator.next().then(
      ({ done, value }) => {
        if (done === true) ended = true;
        else ready = Array.isArray(value) ? (value as readonly StateEvent[]) : [value as StateEvent];
        wake();
      },
      (error: unknown) => {
        ready = [{ type: 'errored', error: findError(error) ?? unavailable('the watch failed', error) }];
        ended = true;
        wake();
      },
    );
  };
  return {
    take(max) {
      const taken = ready.slice(0, max);
      ready = ready.slice(max);
      return taken;
    },
    whenReady(callback) {
      if (ready.length > 0 || ended) return callback();
      callbacks.push(callback);
      read();
    },
    get ended() {
      return ended;
    },
    close() {
      ended = true;
      ready = [];
      void watch[Symbol.asyncDispose]();
      wake();
    },
  };
}
