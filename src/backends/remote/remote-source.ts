import { addAbortListener } from 'node:events';
import type { ClientReadableStream, ServiceError } from '@grpc/grpc-js';
import type { Environment } from '../../environment/index.ts';
import type { Bytes, ErrorCode } from '../../resource/index.ts';
import { findError, SteadystateError } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';
import { closed, unavailable } from '../../state/index.ts';
import type { WatchResponse } from '../../wire/index.ts';
import { Stretch } from './stretch.ts';

/** Events that wait here for a reader before the stream is stopped: the server's core coalesces, not this. */
const highWater = 512;
const firstDelayMs = 100;
const maxDelayMs = 5_000;

/**
 * What ends a watch only for now: the line, a time limit of a proxy, a server that is short of something, or that still counts
 * the lost stream against a quota.
 */
const passing: ReadonlySet<string> = new Set<ErrorCode>(['Unavailable', 'Timeout', 'NoSpace', 'Throttled']);

export interface RemoteSourceOptions {
  readonly environment: Environment;
  /** Opens the stream, from a bookmark when there is one. */
  readonly open: (bookmark: Bytes | undefined) => ClientReadableStream<WatchResponse>;
  readonly decode: (response: WatchResponse) => readonly StateEvent[];
  readonly readError: (error: ServiceError) => SteadystateError;
  /** The first bookmark was asked for by us alone: it is not shown. */
  readonly hideFirstNoop: boolean;
  /** The watch is established by its first bookmark only, since before it a lost connection could not be mended. */
  readonly awaitBookmark: boolean;
  /** Where the reader asked to go on from. */
  readonly from: Bytes | undefined;
  /** It begins with what is there, so that it may begin once more while its reader has seen nothing. */
  readonly repeatable: boolean;
  /** Nothing is open any more, and nothing will be. */
  readonly onEnd: () => void;
  /** The server says when a watch that goes on has told all that was missed. */
  readonly tellsCaughtUp: boolean;
}

/** The events of one remote watch. It resumes from its last bookmark when the connection is lost. */
export class RemoteSource implements EventSource {
  readonly #options: RemoteSourceOptions;
  #stream: ClientReadableStream<WatchResponse> | undefined;
  #queue: StateEvent[] = [];
  #callbacks: (() => void)[] = [];
  #bookmark: Bytes | undefined;
  /** What the reader was told of the coalesced stretch that is on its way. */
  readonly #stretch = new Stretch();
  #hideNoop: boolean;
  #timer: Disposable | undefined;
  #delayMs = firstDelayMs;
  #paused = false;
  /** Ends an attempt to connect. */
  #giveUp: ((reason: unknown) => void) | undefined;
  /** It was established once. */
  #opened = false;
  /** Something was handed to the reader. */
  #given = false;
  ended = false;

  constructor(options: RemoteSourceOptions) {
    this.#options = options;
    this.#hideNoop = options.hideFirstNoop;
    this.#bookmark = options.from;
  }

  /** Resolves once the server says that the watch is established; rejects with the error of its start, or the signal's reason. */
  async start(signal: AbortSignal | undefined): Promise<void> {
    const abort = signal && addAbortListener(signal, () => this.close(signal.reason));
    try {
      await this.#connect();
    } catch (error) {
      this.close();
      throw error;
    } finally {
      abort?.[Symbol.dispose]();
    }
  }

  #connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      const stream = this.#options.open(this.#opened ? this.#bookmark : undefined);
      this.#stream = stream;
      let established = false;
      stream.on('data', (response: WatchResponse) => {
        if (this.#stream !== stream) return;
        this.#receive(response);
        if (established || (this.#options.awaitBookmark && this.#bookmark === undefined && !this.ended)) return;
        established = this.#opened = true;
        this.#delayMs = firstDelayMs;
        resolve();
      });
      stream.on('error', (error: ServiceError) => {
        if (this.#stream !== stream) return;
        this.#stream = undefined;
        const read = this.#options.readError(error);
        if (established) this.#lost(read);
        else reject(read);
      });
      stream.on('end', () => {
        if (this.#stream !== stream) return;
        this.#stream = undefined;
        const closed = unavailable('the server ended the watch');
        if (established) this.#lost(closed);
        else reject(closed);
      });
    });
  }

  take(max: number): readonly StateEvent[] {
    if (this.#queue.length === 0) return [];
    this.#given = true;
    const taken = this.#queue.length <= max ? this.#queue : this.#queue.slice(0, max);
    this.#queue = this.#queue.slice(taken.length);
    if (this.#paused && this.#queue.length < highWater / 2) {
      this.#paused = false;
      this.#stream?.resume();
    }
    return taken;
  }

  whenReady(callback: () => void): void {
    if (this.ended || this.#queue.length > 0) callback();
    else this.#callbacks.push(callback);
  }

  /** `reason`: for whoever waits until the watch is established. */
  close(reason: unknown = closed('the watch was closed')): void {
    if (this.ended && this.#stream === undefined && this.#timer === undefined) return;
    this.ended = true;
    this.#giveUp?.(reason);
    this.#queue = [];
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream !== undefined) {
      stream.on('error', () => {});
      stream.cancel();
    }
    this.#options.onEnd();
    this.#wake();
  }

  #wake(): void {
    for (const callback of this.#callbacks.splice(0)) callback();
  }

  #receive(response: WatchResponse): void {
    let events: readonly StateEvent[];
    try {
      events = this.#options.decode(response);
    } catch (error) {
      return this.#fail(
        findError(error) ?? new SteadystateError('Corrupt', 'the server sent an event that cannot be read', { cause: error }),
      );
    }
    for (const event of events) {
      const place = this.#bookmark;
      const isNewPlace = event.bookmark !== undefined && !(place?.equals(event.bookmark) ?? false);
      if (this.#stretch.mending && place !== undefined && event.type !== 'errored' && event.type !== 'kindErrored') {
        if (!this.#stretch.hold(event, isNewPlace, this.#options.tellsCaughtUp)) continue;
        if (event.bookmark !== undefined) this.#bookmark = event.bookmark;
        for (const mended of this.#stretch.mend(event, place)) this.#queue.push(mended);
        continue;
      }
      if (event.bookmark !== undefined) this.#bookmark = event.bookmark;
      if (event.type === 'noop' && this.#hideNoop) {
        this.#hideNoop = false;
        continue;
      }
      if (isNewPlace) this.#stretch.end();
      else if (place !== undefined && event.resync === true) this.#stretch.tell(event);
      this.#queue.push(event);
      if (event.type === 'errored') {
        this.ended = true;
        this.#stream = undefined;
        this.#options.onEnd();
      }
    }
    if (this.#queue.length >= highWater && !this.#paused) {
      this.#paused = true;
      this.#stream?.pause();
    }
    if (events.length > 0) this.#wake();
  }

  #lost(error: SteadystateError): void {
    if (this.ended) return;
    if (!passing.has(error.code)) return this.#fail(error);
    if (this.#bookmark === undefined) {
      // Without a place to go on from, what was missed cannot be known, unless the reader has seen nothing yet.
      if (this.#given || !this.#options.repeatable) return this.#fail(error);
      this.#queue = [];
    }
    const { environment } = this.#options;
    const delayMs = this.#delayMs * (0.5 + environment.random() / 2);
    this.#delayMs = Math.min(this.#delayMs * 2, maxDelayMs);
    this.#timer = environment.after(delayMs, () => {
      this.#timer = undefined;
      this.#paused = false;
      this.#stretch.restart();
      this.#connect().catch((cause: unknown) => this.#lost(findError(cause) ?? unavailable('the watch could not be resumed', cause)));
    });
  }

  #fail(error: SteadystateError): void {
    if (this.ended) return;
    this.#queue.push({ type: 'errored', error });
    this.ended = true;
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.cancel();
    this.#options.onEnd();
    this.#wake();
  }
}
