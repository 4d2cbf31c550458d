import type { Environment } from '../environment/index.ts';
import { invalid } from '../resource/index.ts';
import type { CallOptions, State } from '../state/index.ts';
import type { CallName, EncodedMethod, Method, ResourceCodec } from '../wire/index.ts';
import { MalformedRequest } from '../wire/index.ts';
import { inCallSpan } from './call-spans.ts';
import type { FrameCache } from './frame-cache.ts';
import { frame } from './grpc/framing.ts';
import type { StreamMethod, UnaryMethod } from './grpc/methods.ts';
import type { ServerCall, Trailers } from './grpc/server-call.ts';
import type { Turns } from './turns.ts';

/** What all handlers need. */
export interface HandlerContext {
  readonly state: State;
  readonly environment: Environment;
  readonly codec: ResourceCodec;
  readonly frames: FrameCache;
  /** When watches send what has come for them. */
  readonly turns: Turns;
  /** Aborts when the server stops: watches end cleanly. */
  readonly stopping: AbortSignal;
  /** The store's revision, where it has one. */
  readonly revision?: (() => number) | undefined;
}

/** A unary method around a function that answers a message. */
export function unary<Request, Response>(
  context: HandlerContext,
  method: Method<Request, Response>,
  name: CallName,
  handle: (request: Request, call: ServerCall, part: CallOptions) => Promise<Response>,
): UnaryMethod {
  return {
    kind: 'unary',
    path: method.path,
    name,
    answer: (message, call) =>
      inCallSpan(context.environment.tracer, method.path, call, async (part) => ({
        framed: frame(method.responseSerialize(await handle(read(method, message), call, part))),
      })),
  };
}

/** A unary method around a function that answers a frame. */
export function unaryFramed<Request>(
  context: HandlerContext,
  method: Pick<EncodedMethod<Request, unknown>, 'path' | 'requestDeserialize'>,
  name: CallName,
  handle: (request: Request, call: ServerCall, part: CallOptions) => Promise<{ readonly framed: Uint8Array; readonly trailers?: Trailers }>,
): UnaryMethod {
  return {
    kind: 'unary',
    path: method.path,
    name,
    answer: (message, call) =>
      inCallSpan(context.environment.tracer, method.path, call, async (part) => handle(read(method, message), call, part)),
  };
}

/** A method that answers with a stream. */
export function streaming<Request>(
  context: HandlerContext,
  method: Pick<EncodedMethod<Request, unknown>, 'path' | 'requestDeserialize'>,
  name: CallName,
  isWatch: boolean,
  handle: (request: Request, call: ServerCall, part: CallOptions) => Promise<Trailers | undefined>,
): StreamMethod {
  return {
    kind: 'stream',
    path: method.path,
    name,
    isWatch,
    stream: (message, call) =>
      inCallSpan(context.environment.tracer, method.path, call, async (part) => handle(read(method, message), call, part)),
  };
}

/** Throws Invalid for bytes that are no message. */
function read<Request>(method: { requestDeserialize(bytes: Buffer): Request }, message: Buffer): Request {
  const request = method.requestDeserialize(message);
  if (request instanceof MalformedRequest) throw invalid([{ path: 'request', message: `cannot be decoded: ${request.reason}` }]);
  return request;
}

/** A signal that aborts with the call, and when the server stops. Dispose it with the call. */
export function endOf(call: ServerCall, { stopping }: HandlerContext): { readonly signal: AbortSignal } & Disposable {
  const aborter = new AbortController();
  const stop = (): void => aborter.abort();
  call.signal.addEventListener('abort', stop, { once: true });
  stopping.addEventListener('abort', stop, { once: true });
  if (call.cancelled || stopping.aborted) stop();
  return { signal: aborter.signal, [Symbol.dispose]: () => stopping.removeEventListener('abort', stop) };
}
