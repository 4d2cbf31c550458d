import type { handleServerStreamingCall, handleUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { Metadata as GrpcMetadata } from '@grpc/grpc-js';
import type { Environment } from '../environment/index.ts';
import type { Kind, Resource, ResourcePhase } from '../resource/index.ts';
import { Bytes, invalid } from '../resource/index.ts';
import type { AggregatedWatch, CallOptions, State, StateEvent, WatchKindOptions } from '../state/index.ts';
import { failSpan, unsupported } from '../state/index.ts';
import type {
  CallName,
  CreateRequest,
  GetRequest,
  ListRequest,
  OwnedPointerRequest,
  ResourceCodec,
  TeardownResponse,
  UpdateRequest,
  WatchRequest,
  WireResource,
  WireWatchOptions,
} from '../wire/index.ts';
import {
  encodeEvent,
  encodeWatchResponse,
  MalformedRequest,
  queryFromWire,
  revisionKey,
  statusDetailsKey,
  toStatus,
} from '../wire/index.ts';
import { answerOf } from './answers.ts';
import { startCallSpan, within } from './call-spans.ts';
import type { RunningCalls } from './running-calls.ts';

/** Largest message of a watch, bytes: Go clients refuse more than 4 MiB. */
const largestMessage = 3_900_000;

/** What all handlers need. */
export interface HandlerContext {
  readonly state: State;
  readonly environment: Environment;
  readonly codec: ResourceCodec;
  /** Aborts when the server stops: watches end cleanly. */
  readonly stopping: AbortSignal;
  readonly running: RunningCalls;
}

/** The error of a call as grpc-js takes it. */
export function grpcError(
  error: unknown,
  call: CallName,
): { readonly code: number; readonly details: string; readonly metadata: GrpcMetadata } {
  const { code, message, details } = toStatus(error, call);
  const metadata = new GrpcMetadata();
  metadata.set(statusDetailsKey, details);
  return { code, details: message.replace(/[\r\n]+/g, ' '), metadata };
}

/** Rejects with Invalid for bytes that were no message. */
async function checked<Request>(request: Request): Promise<Request> {
  if (request instanceof MalformedRequest) throw invalid([{ path: 'request', message: `cannot be decoded: ${request.reason}` }]);
  return request;
}

/** A unary handler around a function. */
export function unary<Request, Response>(
  { running, environment }: HandlerContext,
  call: CallName,
  handle: (request: Request, signal: AbortSignal, part: CallOptions) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (incoming, callback) => {
    const span = startCallSpan(environment.tracer, incoming);
    const aborter = new AbortController();
    incoming.on('cancelled', () => aborter.abort());
    running.begin();
    checked(incoming.request)
      .then((request) => span.run(() => handle(request, aborter.signal, within(span))))
      .then(
        (response) => callback(null, response),
        (error: unknown) => {
          failSpan(span, error);
          callback(grpcError(error, call));
        },
      )
      .finally(() => {
        span.end();
        running.end();
      });
  };
}

export function stateHandlers(context: HandlerContext) {
  const { state, codec } = context;
  return {
    get: unary<GetRequest, Buffer>(context, 'get', async (request, _signal, part) =>
      answer(codec, await state.get(pointerOf(request), part)),
    ),
    create: unary<CreateRequest, Buffer>(context, 'create', async ({ resource, options }, _signal, part) =>
      answer(codec, await state.create(incoming(codec, resource), { owner: options.owner, ...part })),
    ),
    update: unary<UpdateRequest, Buffer>(context, 'update', async ({ newResource, options }, _signal, part) => {
      const expectedPhase = options.expectedPhase === undefined ? 'any' : phaseOf(options.expectedPhase);
      const resource = incoming(codec, newResource);
      if (newResource?.spec?.protoSpec.length === 0) await refuseLostForm(state, codec, resource);
      return answer(codec, await state.update(resource, { owner: options.owner, expectedPhase, ...part }));
    }),
    destroy: unary<OwnedPointerRequest, object>(context, 'destroy', async (request, _signal, part) => {
      await state.destroy(pointerOf(request), { owner: request.options.owner, ...part });
      return {};
    }),
    teardown: unary<OwnedPointerRequest, TeardownResponse>(context, 'teardown', async (request, _signal, part) => ({
      destroyReady: await state.teardown(pointerOf(request), { owner: request.options.owner, ...part }),
    })),
    teardownAndDestroy: unary<OwnedPointerRequest, object>(context, 'teardownAndDestroy', async (request, signal, part) => {
      await state.teardownAndDestroy(pointerOf(request), { owner: request.options.owner, signal, ...part });
      return {};
    }),
    list: streaming<ListRequest>(context, 'list', async (call, _signal, part) => {
      const { namespace, type, options } = call.request;
      const { items, revision } = await state.list({ namespace, type }, { ...queryFromWire(options), ...part });
      let count = 0;
      for (const item of items) {
        if (call.cancelled) return undefined;
        if (!call.write(answer(codec, item))) await drained(call);
        if (++count % 256 === 0) await context.environment.breathe();
      }
      if (revision === undefined) return undefined;
      const trailer = new GrpcMetadata();
      trailer.set(revisionKey, String(revision));
      return trailer;
    }),
    watch: streaming<WatchRequest>(context, 'watch', async (call, signal, part) => {
      const { namespace, type, id, options, apiVersion } = call.request;
      const kind = { namespace, type };
      if (id !== undefined) {
        if (options.bootstrapContents || options.labelQuery.length > 0 || options.idQuery !== undefined)
          throw unsupported('a watch of one resource takes neither bootstrap_contents nor queries');
        const watch = await state.watch({ ...kind, id }, { ...placeOf(options), signal, ...part });
        return relay(context, call, watch, kind, { aggregated: options.aggregated, apiVersion, noops: true });
      }
      const watch = await state.watchKindAggregated(kind, { ...kindOptions(options), signal, ...part });
      // A foreign client gets a bare bookmark only if it showed that it knows them.
      const noops = options.bootstrapBookmark || options.startFromBookmark !== undefined;
      return relay(context, call, watch, kind, { aggregated: options.aggregated, apiVersion, noops });
    }),
  };
}

/** Options of a watch over kinds, from the wire. */
export function kindOptions(options: WireWatchOptions): WatchKindOptions {
  return {
    ...placeOf(options),
    ...queryFromWire(options),
    ...(options.bootstrapContents && { bootstrapContents: true }),
    ...(options.bootstrapBookmark && { bootstrapBookmark: true }),
  };
}

function placeOf(options: WireWatchOptions): Pick<WatchKindOptions, 'tailEvents' | 'startFromBookmark' | 'strict'> {
  return {
    ...(options.tailEvents !== 0 && { tailEvents: options.tailEvents }),
    ...(options.startFromBookmark !== undefined &&
      options.startFromBookmark.length > 0 && { startFromBookmark: Bytes.from(options.startFromBookmark) }),
    ...(options.strict && { strict: true }),
  };
}

function pointerOf({ namespace, type, id }: { readonly namespace: string; readonly type: string; readonly id: string }) {
  return { namespace, type, id };
}

/** A resource from a request. Invalid for one that could be stored, but never be sent to anybody. */
function incoming(codec: ResourceCodec, wire: WireResource | undefined): Resource {
  const resource = codec.fromWire(wire);
  // Most are far from the limit; those near it are measured.
  const { protoSpec, yamlSpec } = wire?.spec ?? { protoSpec: [], yamlSpec: '' };
  const size = protoSpec.length + yamlSpec.length > largestMessage / 4 ? codec.encode(resource).length : 0;
  if (size > largestMessage)
    throw invalid([{ path: '', message: `${size} bytes as a message, at most ${largestMessage} can be sent` }], resource.metadata);
  return resource;
}

/**
 * Readers in other languages take a missing protobuf form for an empty spec, so a write that would lose it is refused.
 * The version that was looked at is the precondition of the write, so nothing comes between.
 */
async function refuseLostForm(state: State, codec: ResourceCodec, resource: Resource): Promise<void> {
  const stored = await state.get(resource.metadata).catch(() => undefined);
  if (stored === undefined || stored.metadata.version !== resource.metadata.version) return;
  if (codec.toWire(stored).spec?.protoSpec.length === 0 || codec.toWire(resource).spec?.protoSpec.length !== 0) return;
  throw invalid(
    [{ path: 'spec', message: 'the stored spec has a protobuf form, and this write would lose it: write it with the codec of its type' }],
    resource.metadata,
  );
}

function phaseOf(text: string): ResourcePhase {
  if (text === 'running' || text === 'tearingDown') return text;
  throw invalid([{ path: 'expected_phase', message: `expected running or tearingDown, found ${JSON.stringify(text)}` }]);
}

function answer(codec: ResourceCodec, resource: Resource): Buffer {
  return answerOf(codec.encode(resource));
}

type Streaming<Request> = ServerWritableStream<Request, Buffer>;

/** A streaming handler around a function; its error becomes the status, its end the end of the stream. */
export function streaming<Request>(
  { running, stopping, environment }: HandlerContext,
  name: CallName,
  handle: (call: Streaming<Request>, signal: AbortSignal, part: CallOptions) => Promise<GrpcMetadata | undefined>,
): handleServerStreamingCall<Request, Buffer> {
  return (call) => {
    const span = startCallSpan(environment.tracer, call);
    const aborter = new AbortController();
    const stop = (): void => aborter.abort();
    call.on('cancelled', stop);
    call.on('error', stop);
    stopping.addEventListener('abort', stop, { once: true });
    running.begin();
    checked(call.request)
      .then(() => span.run(() => handle(call, aborter.signal, within(span))))
      .then(
        (trailer) => call.end(trailer),
        // grpc-js makes the status of what is emitted here; destroying the stream would only reset it.
        (error: unknown) => {
          failSpan(span, error);
          call.emit('error', Object.assign(new Error('call failed'), grpcError(error, name)));
        },
      )
      .finally(() => {
        span.end();
        stopping.removeEventListener('abort', stop);
        running.end();
      });
  };
}

/** Resolves when the stream takes more, or has ended. */
function drained(call: Streaming<never> | Streaming<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      call.off('drain', settle);
      call.off('close', settle);
      call.off('cancelled', settle);
      resolve();
    };
    call.on('drain', settle);
    call.on('close', settle);
    call.on('cancelled', settle);
    if (call.cancelled || call.destroyed) settle();
  });
}

interface RelayOptions {
  readonly aggregated: boolean;
  readonly apiVersion: number;
  /** Whether bare bookmarks are sent. */
  readonly noops: boolean;
}

/**
 * Sends a watch over a stream. Events are pulled from the store only while the stream takes them, so that a client that
 * does not read costs what a lagging watcher costs, and nothing here.
 */
export async function relay(
  context: HandlerContext,
  call: Streaming<never> | Streaming<unknown>,
  watch: AggregatedWatch | Awaited<ReturnType<State['watch']>>,
  kind: Kind,
  options: RelayOptions,
): Promise<undefined> {
  const write = async (message: Buffer): Promise<void> => {
    if (!(call as Streaming<unknown>).write(message)) await drained(call);
  };
  try {
    // Established: clients wait for this.
    await write(encodeWatchResponse([]));
    for await (const item of watch as AsyncIterable<StateEvent | readonly StateEvent[]>) {
      if (call.cancelled) return undefined;
      const events = (Array.isArray(item) ? item : [item as StateEvent]) as readonly StateEvent[];
      const sent = events.filter((event) => wanted(event, options)).map((event) => encodeEvent(event, kind, context.codec));
      if (options.aggregated) for (const batch of batches(sent)) await write(encodeWatchResponse(batch));
      else for (const event of sent) await write(encodeWatchResponse([event]));
    }
    return undefined;
  } finally {
    await watch[Symbol.asyncDispose]();
  }
}

function wanted(event: StateEvent, { apiVersion, noops }: RelayOptions): boolean {
  if (event.type === 'noop') return noops;
  return apiVersion >= 1 || (event.type !== 'bootstrapped' && event.type !== 'errored');
}

/** Splits so that no message is too large for its reader. */
function* batches(events: readonly Buffer[]): Generator<readonly Buffer[]> {
  let batch: Buffer[] = [];
  let size = 0;
  for (const event of events) {
    if (batch.length > 0 && size + event.length > largestMessage) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(event);
    size += event.length + 8;
  }
  if (batch.length > 0) yield batch;
}
