import { addAbortListener } from 'node:events';
import type { Environment } from '../environment/index.ts';
import { SteadystateError } from '../resource/index.ts';
import type { EventSource } from './event-source.ts';
import type { StateEvent } from './events.ts';
import type { AggregatedWatch, EventStream, Watch } from './watch.ts';

/** Most events handed over at once. */
const batchSize = 1024;
/** A reader of ready events gives way to timers and input after this many. */
const eventsPerBreath = 256;
/** … or after this long, milliseconds. */
const breathAfterMs = 5;
/** The clock is looked at after this many. */
const eventsPerLook = 16;

export interface EventStreamOptions {
  readonly environment: Environment;
  readonly signal?: AbortSignal | undefined;
}

/** A watch that gives single events from a source. */
export function createWatch<Spec>(source: EventSource, options: EventStreamOptions): Watch<Spec> {
  return new Stream<StateEvent>(source, options, false) as unknown as Watch<Spec>;
}

/** A watch that gives batches from a source. */
export function createAggregatedWatch<Spec>(source: EventSource, options: EventStreamOptions): AggregatedWatch<Spec> {
  return new Stream<readonly StateEvent[]>(source, options, true) as unknown as AggregatedWatch<Spec>;
}

/** The source below a watch of this room, for wrappers that change what is delivered. The watch must not be read any more. */
export function sourceOf(watch: Watch | AggregatedWatch): EventSource {
  if (!(watch instanceof Stream))
    throw new SteadystateError('Unsupported', 'this watch was not made by createWatch or createAggregatedWatch');
  return watch.claim();
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

const noEvents: readonly StateEvent[] = Object.freeze([]);

type Waiter<Item> = (result: IteratorResult<Item, undefined>) => void;

// The iterator is written by hand: the return() of an async generator hangs behind a pending next().
class Stream<Item> implements EventStream<Item>, AsyncIterator<Item, undefined, undefined> {
  readonly #source: EventSource;
  readonly #environment: Environment;
  /** Whole batches are handed out, not single events. */
  #aggregated: boolean;
  readonly #opened: Disposable;
  #abort: Disposable | undefined;
  readonly #waiters: Waiter<Item>[] = [];
  #batch: readonly StateEvent[] = noEvents;
  #index = 0;
  /** Single events of the batch that may be handed out before anything has to be looked at. */
  #free = 0;
  #used = false;
  #closed = false;
  #afterErrored = false;
  #sinceBreath = 0;
  /** The clock is looked at once so many events were handed out since. */
  #nextLook = eventsPerLook;
  #lastBreath: number;
  #breathing = false;
  #waiting = false;
  /** Goes on with reading, when something may be there or a breath is over. */
  #goOn: () => void = () => this.#serve();
  readonly #wake = (): void => {
    // A source may call back from a close and from an event; a reader that went on twice would read twice.
    if (!this.#waiting) return;
    this.#waiting = false;
    this.#goOn();
  };
  #onClose: (() => void) | undefined;

  constructor(source: EventSource, options: EventStreamOptions, aggregated: boolean) {
    this.#source = source;
    this.#environment = options.environment;
    this.#aggregated = aggregated;
    this.#opened = options.environment.open.track('watch');
    this.#lastBreath = options.environment.elapsed();
    if (options.signal?.aborted) this.#close();
    // addAbortListener, not AbortSignal.any: the latter leaks with a long-lived signal.
    else if (options.signal) this.#abort = addAbortListener(options.signal, () => this.#close());
  }

  /** Hands the source to a wrapper, which then is the one reader. */
  claim(): EventSource {
    this.#use();
    const stream = this;
    return {
      take: (max) => (stream.#closed ? [] : stream.#source.take(max)),
      whenReady(callback) {
        if (stream.#closed) return callback();
        stream.#onClose = callback;
        stream.#source.whenReady(callback);
      },
      get ended() {
        return stream.#closed || stream.#source.ended;
      },
      close: () => stream.#close(),
    };
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, undefined, undefined> {
    this.#use();
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    // Most calls end here. Nobody waits while there are free ones.
    if (this.#free > 0) return Promise.resolve({ done: false, value: this.#takeFree() });
    if (this.#waiters.length === 0) {
      const item = this.#ready();
      if (item !== undefined) return Promise.resolve({ done: false, value: item });
    }
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#wait();
    });
  }

  return(): Promise<IteratorResult<Item, undefined>> {
    this.#close();
    return Promise.resolve({ done: true, value: undefined });
  }

  forEach(handle: (item: Item) => unknown): Promise<void> {
    this.#use();
    return new Promise((resolve, reject) => {
      let handling = false;
      const fail = (error: unknown): void => {
        reject(error);
        this.#close();
      };
      const goOn = (): void => {
        try {
          for (let item = this.#ready(); item !== undefined; item = this.#ready()) {
            handling = true;
            const result = handle(item);
            if (isThenable(result)) return void Promise.resolve(result).then(goOn, fail);
          }
        } catch (error) {
          return fail(error);
        }
        handling = false;
        if (this.#closed) resolve();
        else this.#wait();
      };
      // What `handle` is about to throw is not lost when it has closed the watch before.
      this.#onClose = () => {
        if (!handling) resolve();
      };
      this.#goOn = goOn;
      goOn();
    });
  }

  drain(deliver: (batch: readonly StateEvent[]) => unknown): Promise<void> {
    if (!this.#used) this.#aggregated = true;
    return this.forEach(deliver as (item: Item) => unknown);
  }

  #use(): void {
    if (this.#used) throw new SteadystateError('Unsupported', 'a watch can be read once: it already has an iterator or is being drained');
    this.#used = true;
  }

  #serve(): void {
    while (this.#waiters.length > 0) {
      const value = this.#ready();
      if (value === undefined) return this.#wait();
      (this.#waiters.shift() as Waiter<Item>)({ done: false, value });
    }
  }

  /** Takes the next item, if it can be given at once. */
  #ready(): Item | undefined {
    if (this.#free > 0) return this.#takeFree();
    if (this.#breathing || this.#closed) return undefined;
    if (this.#index >= this.#batch.length) {
      if (this.#afterErrored) return undefined;
      const batch = this.#source.take(batchSize);
      if (batch.length === 0) return undefined;
      this.#batch = batch;
      this.#index = 0;
      this.#afterErrored = batch[batch.length - 1]?.type === 'errored';
    }
    // Of what was handed out before: a batch larger than one breath's share must not wait for ever.
    if (this.#needsBreath()) {
      this.#breathe();
      return undefined;
    }
    const batch = this.#batch;
    if (this.#aggregated) {
      this.#sinceBreath += batch.length;
      this.#forgetBatch();
      return batch as Item;
    }
    this.#free = Math.min(eventsPerLook, batch.length - this.#index);
    this.#sinceBreath += this.#free;
    return this.#takeFree();
  }

  #takeFree(): Item {
    const batch = this.#batch;
    const item = batch[this.#index++];
    this.#free--;
    // What was handed out must not be kept alive by the watch.
    if (this.#index === batch.length) this.#forgetBatch();
    return item as Item;
  }

  #forgetBatch(): void {
    this.#batch = noEvents;
    this.#index = 0;
    this.#free = 0;
  }

  /** Nothing can be given now: goes on when something can, or ends. */
  #wait(): void {
    if (this.#breathing) return;
    if (this.#closed) return this.#finish();
    if (this.#afterErrored || this.#source.ended) return this.#close();
    if (this.#waiting) return;
    this.#waiting = true;
    this.#source.whenReady(this.#wake);
  }

  #needsBreath(): boolean {
    if (this.#sinceBreath < eventsPerBreath) {
      // Small batches do not look at the clock each.
      if (this.#sinceBreath < this.#nextLook) return false;
      this.#nextLook = this.#sinceBreath + eventsPerLook;
      if (this.#environment.elapsed() - this.#lastBreath < breathAfterMs) return false;
    }
    this.#sinceBreath = 0;
    this.#nextLook = eventsPerLook;
    return true;
  }

  #breathe(): void {
    this.#breathing = true;
    void this.#environment.breathe().then(() => {
      this.#breathing = false;
      this.#lastBreath = this.#environment.elapsed();
      this.#goOn();
    });
  }

  #close(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#forgetBatch();
      this.#abort?.[Symbol.dispose]();
      this.#source.close();
      this.#opened[Symbol.dispose]();
      this.#onClose?.();
    }
    this.#finish();
  }

  #finish(): void {
    for (const waiter of this.#waiters.splice(0)) waiter({ done: true, value: undefined });
  }
}
