import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import type { InputType, ZlibOptions } from 'node:zlib';
import { gunzip, inflate } from 'node:zlib';
import type { Environment } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import { grpcCodes, toStatus } from '../../wire/index.ts';
import type { FairQueue } from './fair-queue.ts';
import { MessageReader, timeoutMs } from './framing.ts';
import type { ServerLimits } from './limits.ts';
import type { ServerMethod } from './methods.ts';
import type { CallOwner } from './server-call.ts';
import { ServerCall } from './server-call.ts';

/** What all connections of a server share. */
export interface ServerShare {
  readonly environment: Environment;
  readonly limits: ServerLimits;
  readonly methods: ReadonlyMap<string, ServerMethod>;
  readonly queue: FairQueue;
  watches: number;
  requestBytes: number;
  /** Called as calls begin and end. */
  readonly onCalls: (change: 1 | -1) => void;
}

/** One client, with what it uses of the server. */
export class Connection {
  readonly #share: ServerShare;
  readonly #session: ServerHttp2Session;
  readonly #onIdle: (idle: boolean) => void;
  readonly #owner: CallOwner;
  readonly #sink: RequestSink;
  #calls = 0;
  #watches = 0;
  #requestBytes = 0;
  #answerBytes = 0;
  #greeted = false;
  readonly #since: number;
  /** When the last sign of life came, and when one was asked for since. */
  #alive: number;
  #askedAt: number | undefined;
  /** Requests that are not yet whole, by when they began. */
  readonly #unfinished = new Map<Request, number>();

  /** `onIdle`: told when it begins and ends to have calls. */
  constructor(session: ServerHttp2Session, share: ServerShare, onIdle: (idle: boolean) => void) {
    this.#share = share;
    this.#session = session;
    this.#onIdle = onIdle;
    this.#since = this.#alive = share.environment.elapsed();
    this.#owner = {
      ended: () => share.onCalls(-1),
      holdAnswer: (bytes) => {
        this.#answerBytes += bytes;
        return this.#answerBytes <= share.limits.answerBytesPerConnection;
      },
      // In the next turn: closed in this one, later versions of Node would leave the answer out.
      endAnswered: (stream) => void share.environment.breathe().then(() => stream.close(constants.NGHTTP2_NO_ERROR)),
    };
    this.#sink = {
      hold: (bytes) => this.#hold(bytes),
      begin: (task) => share.queue.push(this, task),
      whole: (request) => void this.#unfinished.delete(request),
    };
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#begin(stream, headers));
    session.once('remoteSettings', () => {
      this.#greeted = true;
    });
    session.on('error', () => {});
    session.on('close', () => share.queue.drop(this));
  }

  get idle(): boolean {
    return this.#calls + this.#watches === 0;
  }

  /** Asks for a sign of life where it is time, and cuts who gives none. */
  look(now: number): void {
    const { limits } = this.#share;
    const session = this.#session;
    if (session.destroyed) return;
    for (const [request, since] of this.#unfinished) if (now - since > limits.requestMs) request.tooSlow();
    if (!this.#greeted) {
      if (now - this.#since > limits.requestMs) session.destroy();
    } else if (this.#askedAt !== undefined) {
      if (now - this.#askedAt > limits.keepaliveTimeoutMs) session.destroy();
    } else if (now - this.#alive >= limits.keepaliveMs) {
      this.#askedAt = now;
      session.ping((error) => {
        if (error !== null) return;
        this.#askedAt = undefined;
        this.#alive = this.#share.environment.elapsed();
      });
    }
  }

  /** Takes no more calls; ends when the last one has. */
  close(): void {
    if (!this.#session.closed) this.#session.close();
  }

  destroy(code: number = constants.NGHTTP2_NO_ERROR): void {
    this.#session.destroy(undefined, code);
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { limits, methods } = this.#share;
    const refusal = refuseHeaders(headers);
    if (refusal !== undefined) {
      stream.on('error', () => {});
      stream.respond({ ':status': refusal }, { endStream: true });
      this.#owner.endAnswered(stream);
      return;
    }
    // Only the path as it is written counts: nothing is decoded or put right.
    const path = headers[':path'] as string;
    const method = methods.get(path);
    const isWatch = method?.kind === 'stream' && method.isWatch;
    let deadline: Disposable | undefined;
    let request: Request | undefined;
    const call = new ServerCall(stream, headers, this.#owner, () => {
      this.#count(isWatch, -1);
      deadline?.[Symbol.dispose]();
      if (request === undefined) return;
      this.#unfinished.delete(request);
      this.#hold(-request.held);
    });
    this.#share.onCalls(1);
    // Until the client has read its answer, it counts.
    this.#count(isWatch, 1);
    if (method === undefined) return call.end({ code: grpcCodes.unimplemented, message: `unknown method ${path.slice(0, 200)}` });
    const full = this.#fullReason(isWatch);
    if (full !== undefined) return call.end(toStatus(new SteadystateError('Throttled', full), method.name));
    const deadlineMs = timeoutMs(headers['grpc-timeout'] as string | undefined);
    if (Number.isNaN(deadlineMs)) return call.end({ code: grpcCodes.internal, message: 'the time-out of the call cannot be read' });
    const encoding = headers['grpc-encoding'] as string | undefined;
    const unpack = unpackers.get(encoding ?? 'identity');
    if (unpack === undefined)
      return call.end(
        { code: grpcCodes.unimplemented, message: `unknown compression ${encoding}` },
        { 'grpc-accept-encoding': 'identity,deflate,gzip' },
      );
    if (deadlineMs !== undefined) deadline = this.#share.environment.after(deadlineMs, () => call.expire());
    request = new Request(stream, call, method, limits.requestBytes, unpack, this.#sink);
    this.#unfinished.set(request, this.#share.environment.elapsed());
  }

  #count(isWatch: boolean, change: 1 | -1): void {
    const wasIdle = this.idle;
    if (isWatch) {
      this.#watches += change;
      this.#share.watches += change;
    } else this.#calls += change;
    if (wasIdle !== this.idle) this.#onIdle(!wasIdle);
  }

  #fullReason(isWatch: boolean): string | undefined {
    const { limits, watches } = this.#share;
    const advice = 'end some, or raise the limit of the server';
    if (!isWatch)
      return this.#calls > limits.callsPerConnection
        ? `this connection has ${limits.callsPerConnection} calls open, which is the most (callsPerConnection): ${advice}`
        : undefined;
    if (this.#watches > limits.watchesPerConnection)
      return `this connection has ${limits.watchesPerConnection} watches open, which is the most (watchesPerConnection): ${advice}`;
    return watches > limits.watchesInTotal
      ? `the server has ${limits.watchesInTotal} watches open, which is the most (watchesInTotal): ${advice}`
      : undefined;
  }

  /** Counts bytes of requests; false when there is no room for them. */
  #hold(bytes: number): boolean {
    const { limits } = this.#share;
    this.#requestBytes += bytes;
    this.#share.requestBytes += bytes;
    return this.#requestBytes <= limits.requestBytesPerConnection && this.#share.requestBytes <= limits.requestBytesInTotal;
  }
}

/** The connection of a request. */
interface RequestSink {
  hold(bytes: number): boolean;
  begin(task: () => void): void;
  whole(request: Request): void;
}

/** Reads what a client sends of one call, and hands it to the method. */
class Request {
  readonly #stream: ServerHttp2Stream;
  readonly #call: ServerCall;
  readonly #method: ServerMethod;
  readonly #reader: MessageReader;
  readonly #largest: number;
  readonly #unpack: Unpack;
  readonly #sink: RequestSink;
  /** The one message of a call that is no conversation. */
  #message: Buffer | undefined;
  #unpacking = 0;
  #endedByClient = false;
  held = 0;

  constructor(stream: ServerHttp2Stream, call: ServerCall, method: ServerMethod, largest: number, unpack: Unpack, sink: RequestSink) {
    this.#stream = stream;
    this.#call = call;
    this.#method = method;
    this.#largest = largest;
    this.#unpack = unpack;
    this.#sink = sink;
    this.#reader = new MessageReader(largest);
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    stream.on('end', () => {
      this.#endedByClient = true;
      this.#proceed();
    });
  }

  tooSlow(): void {
    // A conversation may be silent between its messages.
    if (this.#method.kind === 'conversation' && this.#reader.pending === 0) return;
    this.#call.end({ code: grpcCodes.deadlineExceeded, message: 'the request did not come in time' });
  }

  #take(chunk: Buffer): void {
    if (this.#call.ended) return;
    this.held += chunk.length;
    if (!this.#sink.hold(chunk.length))
      return this.#refuse(new SteadystateError('Throttled', 'too many requests are on their way at once; send fewer at a time'));
    this.#reader.push(chunk);
    for (;;) {
      const next = this.#reader.next();
      if (next === undefined) return;
      if ('tooLarge' in next) return this.#refuse(tooLarge(next.tooLarge, this.#largest));
      if (next.compressed) this.#inflate(next.bytes);
      else this.#deliver(next.bytes);
      if (this.#call.ended) return;
    }
  }

  #inflate(bytes: Buffer): void {
    this.#unpacking++;
    this.#unpack(bytes, { maxOutputLength: this.#largest }, (error, inflated) => {
      this.#unpacking--;
      if (this.#call.ended) return;
      if (error === null) {
        this.held += inflated.length;
        if (!this.#sink.hold(inflated.length))
          return this.#refuse(new SteadystateError('Throttled', 'too many requests are on their way at once; send fewer at a time'));
        this.#deliver(inflated);
        return this.#proceed();
      }
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return this.#refuse(tooLarge(undefined, this.#largest));
      this.#call.end({ code: grpcCodes.internal, message: `the request cannot be inflated: ${error.message}` });
    });
  }

  #deliver(message: Buffer): void {
    const { kind } = this.#method;
    if (kind !== 'conversation') {
      if (this.#message !== undefined) return this.#call.end({ code: grpcCodes.internal, message: 'this call takes one message' });
      this.#message = message;
      return;
    }
    const method = this.#method;
    this.#sink.begin(() => {
      if (this.#call.ended) return;
      try {
        this.#call.send(method.answer(message));
        // Who does not read the answers is asked nothing more.
        if (!this.#call.blocked) return;
        this.#stream.pause();
        this.#call.whenUnblocked(() => this.#stream.resume());
      } catch (error) {
        // Bytes that are no message are the one thing that can be wrong here.
        this.#call.end({ code: grpcCodes.invalidArgument, message: error instanceof Error ? error.message : String(error) });
      }
    });
  }

  /** The client has said all, and all of it is readable. */
  #proceed(): void {
    if (!this.#endedByClient || this.#unpacking > 0 || this.#call.ended) return;
    this.#sink.whole(this);
    const call = this.#call;
    const method = this.#method;
    if (this.#reader.pending > 0) return call.end({ code: grpcCodes.internal, message: 'the request ended in the middle of a message' });
    if (method.kind === 'conversation') return this.#sink.begin(() => call.end({ code: grpcCodes.ok }));
    const message = this.#message;
    if (message === undefined) return call.end({ code: grpcCodes.internal, message: 'this call takes one message, and none came' });
    this.#message = undefined;
    this.#sink.begin(() => {
      if (call.ended) return;
      const fail = (error: unknown): void => call.end(toStatus(error, method.name));
      if (method.kind === 'unary') method.answer(message, call).then(({ framed, trailers }) => call.answer(framed, trailers), fail);
      else method.stream(message, call).then((trailers) => call.end({ code: grpcCodes.ok }, trailers), fail);
    });
  }

  #refuse(error: SteadystateError): void {
    this.#call.end({ ...toStatus(error, this.#method.name), code: grpcCodes.resourceExhausted });
  }
}

function tooLarge(size: number | undefined, largest: number): SteadystateError {
  const found = size === undefined ? 'more than that when inflated' : `${size} bytes`;
  return new SteadystateError('Invalid', `the request is too large: at most ${largest} bytes, found ${found}`);
}

type Unpack = (bytes: InputType, options: ZlibOptions, done: (error: Error | null, inflated: Buffer) => void) => void;
const unpackers: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['identity', (_bytes, _options, done) => done(new Error('it says that it is not compressed'), Buffer.alloc(0))],
  ['gzip', gunzip],
  ['deflate', inflate],
]);

/** The HTTP status for a request that is no call at all. */
function refuseHeaders(headers: IncomingHttpHeaders): number | undefined {
  if (headers[':method'] !== 'POST') return 405;
  const type = headers['content-type'];
  return type === 'application/grpc' || type?.startsWith('application/grpc+') || type?.startsWith('application/grpc;') ? undefined : 415;
}
