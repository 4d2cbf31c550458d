import { addAbortListener } from 'node:events';
import type { ClientReadableStream, ServiceError } from '@grpc/grpc-js';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { SpanContext } from '../../environment/index.ts';
import type { Pointer, SteadystateError } from '../../resource/index.ts';
import { SteadystateError as ErrorClass } from '../../resource/index.ts';
import { closed, unavailable } from '../../state/index.ts';
import type { CallName, EncodedMethod, Method } from '../../wire/index.ts';
import { actorKey, fromStatus, grpcCodes, statusDetailsKey, traceParentKey, traceParentOf } from '../../wire/index.ts';

/** Unary calls that do not block end after this long, milliseconds. */
export const defaultDeadlineMs = 30_000;

/** Of grpc-js itself, under UNIMPLEMENTED, when the server said that all went well, but not with one message. */
const notOneMessage: ReadonlySet<string> = new Set(['No message received', 'Too many responses received']);

/** How grpc-js words the end of a stream by REFUSED_STREAM. */
const refusedStream = 'Stream refused by server';

/** What a call is about, for its errors. */
export interface CallContext {
  readonly call: CallName;
  readonly pointer?: Pointer;
  readonly signal?: AbortSignal | undefined;
  readonly span?: SpanContext | undefined;
  /** Who writes. */
  readonly actor?: string | undefined;
  /** Absent: no deadline, for calls that block. */
  readonly deadlineMs?: number;
}

/** Calls that change nothing: they end with the connection, while a write that was sent goes on to its answer. */
const reads: ReadonlySet<CallName> = new Set(['get', 'list', 'watch']);

type AnyMethod<Request, Response> = Method<Request, Response> | EncodedMethod<Request, Response>;

/** Calls of one server over one connection. */
export class Calls {
  readonly #client: Client;
  readonly #address: string;
  /** What ends with the connection. */
  readonly #open = new Set<{ cancel(): void }>();
  #closed = false;

  /** `address`: `unix:/abs` or `host:port`. */
  constructor(address: string) {
    this.#address = address;
    this.#client = new Client(address, credentials.createInsecure(), {
      'grpc.enable_channelz': 0,
      // What is named is who answers: no proxy that the environment names, no settings that a name server hands out.
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.keepalive_time_ms': 20_000,
      'grpc.keepalive_timeout_ms': 20_000,
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.default_authority': 'localhost',
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 5_000,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
    });
  }

  unary<Request, Response>(method: AnyMethod<Request, Response>, request: Request, context: CallContext): Promise<Response> {
    const { signal } = context;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      let listener: Disposable | undefined;
      const deadlineMs = context.deadlineMs;
      const call = this.#client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadataOf(context),
        deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs },
        (error, response) => {
          listener?.[Symbol.dispose]();
          this.#open.delete(call);
          if (error === null) return resolve(response as Response);
          const read = this.error(error, context);
          // A read that was given up rejects with the caller's own reason; a write that was sent may have happened.
          reject(signal?.aborted && read.code !== 'Ambiguous' ? (signal.reason as Error) : read);
        },
      );
      if (deadlineMs === undefined || reads.has(context.call)) this.#open.add(call);
      if (signal !== undefined) listener = addAbortListener(signal, () => call.cancel());
    });
  }

  stream<Request, Response>(
    method: AnyMethod<Request, Response>,
    request: Request,
    span: SpanContext | undefined,
  ): ClientReadableStream<Response> {
    const { path, requestSerialize, responseDeserialize } = method;
    const stream = this.#client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadataOf({ span }));
    this.#open.add(stream);
    stream.once('status', () => this.#open.delete(stream));
    return stream;
  }

  /** The messages of a stream, which ends with its reader. Its error is one of ours; an abort rejects with the caller's own reason. */
  async *messages<Message>(stream: ClientReadableStream<Message>, context: Pick<CallContext, 'call' | 'signal'>): AsyncGenerator<Message> {
    const { signal } = context;
    const listener = signal && addAbortListener(signal, () => stream.cancel());
    try {
      for await (const message of stream) yield message as Message;
    } catch (error) {
      signal?.throwIfAborted();
      throw isServiceError(error) ? this.error(error, context) : error;
    } finally {
      listener?.[Symbol.dispose]();
      stream.cancel();
    }
  }

  /** The error of the family that a status stands for. */
  error(error: ServiceError, { call, pointer }: CallContext): SteadystateError {
    const details = error.metadata?.get(statusDetailsKey)[0];
    if (this.#closed && error.code === grpcCodes.cancelled) return closed('the connection was closed');
    const notConnected =
      error.code === grpcCodes.unavailable &&
      details === undefined &&
      /No connection established|ECONNREFUSED|ENOENT|Name resolution/i.test(error.details);
    if (notConnected)
      return unavailable(`no server answers at ${this.#address}: ${error.details}; start one, or name another store`, error);
    // HTTP/2 promises that such a call was not begun: a server that stops refuses what comes after its farewell.
    if (error.code === grpcCodes.unavailable && details === undefined && error.details === refusedStream)
      return unavailable(`the server at ${this.#address} takes no more calls; try again`, error);
    const wrongCount = error.code === grpcCodes.unimplemented && details === undefined && notOneMessage.has(error.details);
    const read = fromStatus(
      {
        code: wrongCount ? grpcCodes.internal : error.code,
        message: error.details,
        details: Buffer.isBuffer(details) ? details : undefined,
      },
      { call, sent: true, ...(pointer && { pointer }) },
    );
    return new ErrorClass(read.code, read.message, {
      cause: error,
      issues: read.issues,
      ...(read.pointer && { pointer: read.pointer }),
      ...(read.reason && { reason: read.reason }),
      ...(read.retryAfterMs !== undefined && { retryAfterMs: read.retryAfterMs }),
      ...(read.holder !== undefined && { holder: read.holder }),
    });
  }

  close(): void {
    this.#closed = true;
    for (const call of [...this.#open]) call.cancel();
    this.#client.close();
  }
}

function metadataOf({ span, actor }: Pick<CallContext, 'span' | 'actor'>): Metadata {
  const metadata = new Metadata();
  if (actor !== undefined && actor !== '') metadata.set(actorKey, Buffer.from(actor));
  if (span !== undefined) metadata.set(traceParentKey, traceParentOf(span));
  return metadata;
}

function isServiceError(error: unknown): error is ServiceError {
  return typeof error === 'object' && error !== null && typeof (error as ServiceError).code === 'number' && 'metadata' in error;
}
