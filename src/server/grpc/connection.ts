import type { Socket } from 'node:net';
import type { InputType, ZlibOptions } from 'node:zlib';
import { gunzip, inflate } from 'node:zlib';
import type { Environment } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import { grpcCodes, toStatus } from '../../wire/index.ts';
import type { RequestHead, ServerStream, StreamReader } from '../http2/index.ts';
import { errorCodes, packHeaders, ServerSession } from '../http2/index.ts';
import type { Turns } from '../turns.ts';
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
  /** When connections send what one turn brought. */
  readonly turns: Turns;
  watches: number;
  requestBytes: number;
  /** Called as calls begin and end. */
  readonly onCalls: (change: 1 | -1) => void;
}

/** Who keeps the connections. */
export interface ConnectionWatcher {
  /** It begins, or ends, to have no calls. */
  idle(connection: Connection, idle: boolean): void;
  /** It has ended; its client may not know yet. */
  gone(connection: Connection): void;
  /** Nothing is left of it. */
  left(connection: Connection): void;
}

/** One client, with what it uses of the server. */
export class Connection {
  readonly #share: ServerShare;
  readonly #session: ServerSession;
  readonly #watcher: ConnectionWatcher;
  readonly #owner: CallOwner;
  readonly #sink: RequestSink;
  #calls = 0;
  #watches = 0;
  #requestBytes = 0;
  #answerBytes = 0;
  readonly #since: number;
  /** When the last sign of life came, and when one was asked for since. */
  #alive: number;
  #askedAt: number | undefined;
  /** Requests that are not yet whole, by when they began. */
  readonly #unfinished = new Map<Request, number>();

  constructor(socket: Socket, share: ServerShare, watcher: ConnectionWatcher) {
    this.#share = share;
    this.#watcher = watcher;
    this.#since = this.#alive = share.environment.elapsed();
    this.#owner = {
      ended: () => share.onCalls(-1),
      holdAnswer: (bytes) => {
        this.#answerBytes += bytes;
        return this.#answerBytes <= share.limits.answerBytesPerConnection;
      },
      // In the next turn: some clients leave the answer out when both come at once.
      endAnswered: (stream) => share.turns.next(() => stream.reset(errorCodes.none)),
    };
    this.#sink = {
      hold: (bytes) => this.#hold(bytes),
      begin: (task) => share.queue.push(this, task),
      whole: (request) => void this.#unfinished.delete(request),
      closed: (request, isWatch) => {
        this.#unfinished.delete(request);
        this.#hold(-request.held);
        this.#count(isWatch, -1);
      },
    };
    const { limits } = share;
    this.#session = new ServerSession(
      socket,
      {
        stream: (stream) => this.#begin(stream),
        closed: () => {
          share.queue.drop(this);
          watcher.gone(this);
        },
        left: () => watcher.left(this),
      },
      {
        // More than the quotas, so that who exceeds them is told so instead of waiting.
        mostStreams: limits.watchesPerConnection + limits.callsPerConnection + 100,
        elapsed: () => share.environment.elapsed(),
        soon: (callback) => share.turns.next(callback),
      },
    );
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
    const { headersSince } = session;
    if (headersSince !== undefined && now - headersSince > limits.requestMs) session.destroy(errorCodes.enhanceYourCalm);
    else if (!session.greeted) {
      if (now - this.#since > limits.requestMs) session.destroy();
    } else if (this.#askedAt !== undefined) {
      if (now - this.#askedAt > limits.keepaliveTimeoutMs) session.destroy();
    } else if (now - this.#alive >= limits.keepaliveMs) {
      this.#askedAt = now;
      session.ping(() => {
        this.#askedAt = undefined;
        this.#alive = this.#share.environment.elapsed();
      });
    }
  }

  /** Takes no more calls; ends when the last one has. */
  close(): void {
    this.#session.close();
  }

  /** Ends at once, and says so. */
  destroy(): void {
    this.#session.destroy();
  }

  /** Waits for nothing any more, not even for the client to end its side. */
  cut(): void {
    this.#session.cut();
  }

  #begin(stream: ServerStream): void {
    const { limits, methods } = this.#share;
    const { head } = stream;
    const refusal = refuseHead(head);
    if (refusal !== undefined) {
      stream.respond(packHeaders({ ':status': String(refusal) }), true);
      this.#owner.endAnswered(stream);
      return;
    }
    // Only the path as it is written counts: nothing is decoded or put right.
    const { path } = head;
    const method = methods.get(path);
    const isWatch = method?.kind === 'stream' && method.isWatch;
    const call = new ServerCall(stream, this.#owner);
    const request = new Request(stream, call, method, limits.requestBytes, isWatch, this.#sink);
    stream.reader = request;
    this.#share.onCalls(1);
    // Until the client has read its answer, it counts.
    this.#count(isWatch, 1);
    if (method === undefined) return call.end({ code: grpcCodes.unimplemented, message: `unknown method ${path.slice(0, 200)}` });
    const full = this.#fullReason(isWatch);
    if (full !== undefined) return call.end(toStatus(new SteadystateError('Throttled', full), method.name));
    const deadlineMs = timeoutMs(head.get('grpc-timeout'));
    if (Number.isNaN(deadlineMs)) return call.end({ code: grpcCodes.internal, message: 'the time-out of the call cannot be read' });
    const encoding = head.get('grpc-encoding') ?? 'identity';
    const unpack = unpackers.get(encoding);
    if (unpack === undefined)
      return call.end(
        { code: grpcCodes.unimplemented, message: `unknown compression ${encoding}` },
        { 'grpc-accept-encoding': 'identity,deflate,gzip' },
      );
    request.unpack = unpack;
    if (deadlineMs !== undefined) request.deadline = this.#share.environment.after(deadlineMs, () => call.expire());
    this.#unfinished.set(request, this.#share.environment.elapsed());
  }

  #count(isWatch: boolean, change: 1 | -1): void {
    const wasIdle = this.idle;
    if (isWatch) {
      this.#watches += change;
      this.#share.watches += change;
    } else this.#calls += change;
    if (wasIdle !== this.idle) this.#watcher.idle(this, !wasIdle);
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
  closed(request: Request, isWatch: boolean): void;
}

/** Reads what a client sends of one call, and hands it to the method. */
class Request implements StreamReader {
  readonly #stream: ServerStream;
  readonly #call: ServerCall;
  readonly #method: ServerMethod | undefined;
  readonly #reader: MessageReader;
  readonly #largest: number;
  readonly #isWatch: boolean;
  readonly #sink: RequestSink;
  /** The one message of a call that is no conversation. */
  #message: Buffer | undefined;
  #unpacking = 0;
  #endedByClient = false;
  held = 0;
  unpack: Unpack = neverPacked;
  deadline: Disposable | undefined;

  /** Without a method, the call has ended already. */
  constructor(
    stream: ServerStream,
    call: ServerCall,
    method: ServerMethod | undefined,
    largest: number,
    isWatch: boolean,
    sink: RequestSink,
  ) {
    this.#stream = stream;
    this.#call = call;
    this.#method = method;
    this.#largest = largest;
    this.#isWatch = isWatch;
    this.#sink = sink;
    this.#reader = new MessageReader(largest);
  }

  tooSlow(): void {
    // A conversation may be silent between its messages.
    if (this.#method?.kind === 'conversation' && this.#reader.pending === 0) return;
    this.#call.end({ code: grpcCodes.deadlineExceeded, message: 'the request did not come in time' });
  }

  end(): void {
    this.#endedByClient = true;
    this.#proceed();
  }

  closed(): void {
    this.#call.closed();
    this.deadline?.[Symbol.dispose]();
    this.#sink.closed(this, this.#isWatch);
  }

  data(chunk: Buffer): void {
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
    this.unpack(bytes, { maxOutputLength: this.#largest }, (error, inflated) => {
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
    const method = this.#method;
    if (method?.kind !== 'conversation') {
      if (this.#message !== undefined) return this.#call.end({ code: grpcCodes.internal, message: 'this call takes one message' });
      this.#message = message;
      return;
    }
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
    const call = this.#call;
    const method = this.#method;
    if (!this.#endedByClient || this.#unpacking > 0 || call.ended || method === undefined) return;
    this.#sink.whole(this);
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
    this.#call.end({ ...toStatus(error, this.#method?.name ?? 'control'), code: grpcCodes.resourceExhausted });
  }
}

function tooLarge(size: number | undefined, largest: number): SteadystateError {
  const found = size === undefined ? 'more than that when inflated' : `${size} bytes`;
  return new SteadystateError('Invalid', `the request is too large: at most ${largest} bytes, found ${found}`);
}

type Unpack = (bytes: InputType, options: ZlibOptions, done: (error: Error | null, inflated: Buffer) => void) => void;
const neverPacked: Unpack = (_bytes, _options, done) => done(new Error('it says that it is not compressed'), Buffer.alloc(0));
const unpackers: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['identity', neverPacked],
  ['gzip', gunzip],
  ['deflate', inflate],
]);

/** The HTTP status for a request that is no call at all. */
function refuseHead(head: RequestHead): number | undefined {
  if (head.method !== 'POST') return 405;
  const type = head.get('content-type');
  return type === 'application/grpc' || type?.startsWith('application/grpc+') || type?.startsWith('application/grpc;') ? undefined : 415;
}
