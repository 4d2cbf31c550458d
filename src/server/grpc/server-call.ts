import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { grpcCodes } from '../../wire/index.ts';
import { encodeStatusMessage } from './framing.ts';

/** How a call ends. */
export interface CallStatus {
  readonly code: number;
  readonly message?: string;
  /** The bytes of `grpc-status-details-bin`. */
  readonly details?: Uint8Array;
}

/** Metadata behind the answer. */
export type Trailers = Readonly<Record<string, string>>;

const contentType = 'application/grpc';
const answerHeaders = { ':status': 200, 'content-type': contentType } as const;
const ignore = (): void => {};
const withTrailers = { waitForTrailers: true } as const;

/** The connection of a call, which counts what it uses. */
export interface CallOwner {
  /** Called once, when the call is over, by whomever. */
  ended(): void;
  /** Counts bytes that wait for the client to read; false when it has left too many unread. */
  holdAnswer(bytes: number): boolean;
  /** Ends a stream that was answered before the client had said all. */
  endAnswered(stream: ServerHttp2Stream): void;
}

/** One call, as its handler sees it. */
export class ServerCall {
  readonly #stream: ServerHttp2Stream;
  #aborter: AbortController | undefined;
  #cancelled = false;
  #ended = false;
  #trailers: Record<string, string> | undefined;
  readonly #headers: IncomingHttpHeaders;
  readonly #owner: CallOwner;
  #heldAnswer = 0;

  /** `onClosed`: called once, when the client has read its answer, or has gone. */
  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, owner: CallOwner, onClosed: () => void) {
    this.#stream = stream;
    this.#headers = headers;
    this.#owner = owner;
    stream.on('error', ignore);
    stream.on('close', () => {
      this.cancel();
      if (this.#heldAnswer > 0) owner.holdAnswer(-this.#heldAnswer);
      onClosed();
    });
  }

  /** Metadata that came with the call. */
  header(name: string): string | undefined {
    const value = this.#headers[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** The client has gone, its deadline has passed, or the call was cut. */
  get cancelled(): boolean {
    return this.#cancelled;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Aborts when the call is cancelled. */
  get signal(): AbortSignal {
    if (this.#aborter === undefined) {
      this.#aborter = new AbortController();
      if (this.#cancelled) this.#aborter.abort();
    }
    return this.#aborter.signal;
  }

  /** What was sent last waits for the client to read. */
  get blocked(): boolean {
    return this.#stream.writableNeedDrain && !this.#stream.destroyed;
  }

  /** Calls back, once, when the client takes more, or the call is over. */
  whenUnblocked(callback: () => void): void {
    const stream = this.#stream;
    if (!this.blocked || this.#cancelled) return callback();
    const settle = (): void => {
      stream.off('drain', settle);
      stream.off('close', settle);
      callback();
    };
    stream.on('drain', settle);
    stream.on('close', settle);
  }

  /** Sends one message, framed already. */
  send(framed: Uint8Array): void {
    if (this.#ended || this.#stream.destroyed) return;
    this.#open();
    this.#stream.write(framed);
  }

  /** Sends the one message of an answer, and that all went well. */
  answer(framed: Uint8Array, trailers: Trailers = {}): void {
    if (this.#ended) return;
    const stream = this.#stream;
    if (!stream.destroyed && !stream.closed) {
      this.#heldAnswer = framed.length;
      if (!this.#owner.holdAnswer(framed.length))
        return this.end({ code: grpcCodes.resourceExhausted, message: 'too many answers wait to be read on this connection' });
      this.#open();
      this.#trailers = { 'grpc-status': '0', ...trailers };
      stream.end(framed);
    }
    this.#finish();
  }

  end({ code, message, details }: CallStatus, trailers: Trailers = {}): void {
    if (this.#ended) return;
    const all: Record<string, string> = { 'grpc-status': String(code), ...trailers };
    if (message) all['grpc-message'] = encodeStatusMessage(message);
    if (details) all['grpc-status-details-bin'] = Buffer.from(details).toString('base64').replace(/=+$/, '');
    const stream = this.#stream;
    if (!stream.destroyed && !stream.closed) {
      if (stream.headersSent) {
        this.#trailers = all;
        stream.end();
      } else {
        stream.respond({ ...answerHeaders, ...all }, { endStream: true });
        // What the client still sends of its request is not wanted.
        if (!stream.readableEnded) this.#owner.endAnswered(stream);
      }
    }
    this.#finish();
  }

  /** The client has gone: nothing more can be sent. Idempotent. */
  cancel(): void {
    if (this.#ended && this.#cancelled) return;
    this.#cancelled = true;
    this.#aborter?.abort();
    this.#finish();
  }

  /** The time of the caller is up. */
  expire(): void {
    this.end({ code: grpcCodes.deadlineExceeded, message: 'the deadline of the call has passed' });
    this.cancel();
  }

  #open(): void {
    if (this.#stream.headersSent) return;
    this.#stream.respond(answerHeaders, withTrailers);
    this.#stream.on('wantTrailers', () => this.#stream.sendTrailers(this.#trailers ?? { 'grpc-status': String(grpcCodes.internal) }));
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#owner.ended();
  }
}
