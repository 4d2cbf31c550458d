import { grpcCodes } from '../../wire/index.ts';
import type { ServerStream } from '../http2/index.ts';
import { packHeaders } from '../http2/index.ts';
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

const answerHeaders = { ':status': '200', 'content-type': 'application/grpc' } as const;
const answerBlock = packHeaders(answerHeaders);
const okBlock = packHeaders({ 'grpc-status': '0' });

/** The connection of a call, which counts what it uses. */
export interface CallOwner {
  /** Called once, when the call is over, by whomever. */
  ended(): void;
  /** Counts bytes that wait for the client to read; false when it has left too many unread. */
  holdAnswer(bytes: number): boolean;
  /** Ends a stream that was answered before the client had said all. */
  endAnswered(stream: ServerStream): void;
}

/** One call, as its handler sees it. */
export class ServerCall {
  readonly #stream: ServerStream;
  #aborter: AbortController | undefined;
  #cancelled = false;
  #ended = false;
  readonly #owner: CallOwner;
  #heldAnswer = 0;

  constructor(stream: ServerStream, owner: CallOwner) {
    this.#stream = stream;
    this.#owner = owner;
  }

  /** The client has read its answer, or has gone. */
  closed(): void {
    this.cancel();
    if (this.#heldAnswer > 0) this.#owner.holdAnswer(-this.#heldAnswer);
  }

  /** Metadata that came with the call. */
  header(name: string): string | undefined {
    return this.#stream.head.get(name);
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
    return this.#stream.blocked;
  }

  /** Calls back, once, when the client takes more, or the call is over. */
  whenUnblocked(callback: () => void): void {
    if (this.#cancelled) return callback();
    this.#stream.whenWritable(callback);
  }

  /** Sends one message, framed already. */
  send(framed: Uint8Array): void {
    if (this.#ended || this.#stream.closed) return;
    this.#open();
    this.#stream.write(framed);
  }

  /** Sends the one message of an answer, and that all went well. */
  answer(framed: Uint8Array, trailers?: Trailers): void {
    if (this.#ended) return;
    const stream = this.#stream;
    if (!stream.closed) {
      this.#heldAnswer = framed.length;
      if (!this.#owner.holdAnswer(framed.length))
        return this.end({ code: grpcCodes.resourceExhausted, message: 'too many answers wait to be read on this connection' });
      this.#open();
      stream.write(framed);
      stream.end(trailers === undefined ? okBlock : packHeaders({ 'grpc-status': '0', ...trailers }));
    }
    this.#finish();
  }

  end({ code, message, details }: CallStatus, trailers: Trailers = {}): void {
    if (this.#ended) return;
    const all: Record<string, string> = { 'grpc-status': String(code), ...trailers };
    if (message) all['grpc-message'] = encodeStatusMessage(message);
    if (details) all['grpc-status-details-bin'] = Buffer.from(details).toString('base64').replace(/=+$/, '');
    const stream = this.#stream;
    if (stream.headersSent) stream.end(packHeaders(all));
    else {
      stream.respond(packHeaders({ ...answerHeaders, ...all }), true);
      // What the client still sends of its request is not wanted.
      if (!stream.remoteEnded) this.#owner.endAnswered(stream);
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
    if (!this.#stream.headersSent) this.#stream.respond(answerBlock);
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#owner.ended();
  }
}
