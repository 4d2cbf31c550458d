import type { Codec } from './codec.ts';
import { decode, encode } from './codec.ts';
import * as control from './control-messages.ts';
import * as state from './messages.ts';

/** One call of a service: what grpc-js needs on both sides. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: boolean;
  readonly requestSerialize: (message: Request) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (message: Response) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** A request whose bytes are no message of its type; the handler answers as its call asks, not the transport. */
export class MalformedRequest {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** A method whose server hands over bytes that it has encoded already. */
export type EncodedMethod<Request, Response> = Omit<Method<Request, Response>, 'responseSerialize'> & {
  readonly responseSerialize: (message: Buffer) => Buffer;
};

function read<Request>(codec: Codec<Request>, bytes: Uint8Array): Request {
  try {
    return decode(codec, bytes);
  } catch (error) {
    return new MalformedRequest(error instanceof Error ? error.message : String(error)) as Request;
  }
}

function method<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
  responseStream = false,
): Method<Request, Response> {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (message) => encode(request, message),
    requestDeserialize: (bytes) => read(request, bytes),
    responseSerialize: (message) => encode(response, message),
    responseDeserialize: (bytes) => decode(response, bytes),
  };
}

function encodedMethod<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
  responseStream = false,
): EncodedMethod<Request, Response> {
  return { ...method(path, request, response, responseStream), responseSerialize: (bytes) => bytes };
}

const stateName = 'cosi.resource.State';
/** The service that COSI clients speak. Answers with resources are encoded by the server, once per resource. */
export const stateService = {
  get: encodedMethod(`/${stateName}/Get`, state.getRequestCodec, state.resourceAnswerCodec),
  list: encodedMethod(`/${stateName}/List`, state.listRequestCodec, state.resourceAnswerCodec, true),
  create: encodedMethod(`/${stateName}/Create`, state.createRequestCodec, state.resourceAnswerCodec),
  update: encodedMethod(`/${stateName}/Update`, state.updateRequestCodec, state.resourceAnswerCodec),
  destroy: method(`/${stateName}/Destroy`, state.ownedPointerRequestCodec, state.emptyCodec),
  watch: encodedMethod(`/${stateName}/Watch`, state.watchRequestCodec, state.watchResponseCodec, true),
  teardown: method(`/${stateName}/Teardown`, state.ownedPointerRequestCodec, state.teardownResponseCodec),
  teardownAndDestroy: method(`/${stateName}/TeardownAndDestroy`, state.ownedPointerRequestCodec, state.emptyCodec),
} as const;

const controlName = 'steadystate.v1.Control';
/** Our own service beside it. */
export const controlService = {
  info: method(`/${controlName}/Info`, state.emptyCodec, control.infoResponseCodec),
  validate: method(`/${controlName}/Validate`, control.validateRequestCodec, control.validateResponseCodec),
  readiness: method(`/${controlName}/Readiness`, state.getRequestCodec, control.readinessResponseCodec),
  notes: method(`/${controlName}/Notes`, state.getRequestCodec, control.notesResponseCodec),
  finalizers: method(`/${controlName}/Finalizers`, state.getRequestCodec, control.finalizersResponseCodec),
  graph: method(`/${controlName}/Graph`, state.emptyCodec, control.graphResponseCodec),
  destroyIncarnation: method(`/${controlName}/DestroyIncarnation`, control.destroyIncarnationRequestCodec, state.emptyCodec),
  releaseFinalizer: method(`/${controlName}/ReleaseFinalizer`, control.releaseFinalizerRequestCodec, control.releaseFinalizerResponseCodec),
  watchKinds: encodedMethod(`/${controlName}/WatchKinds`, control.watchKindsRequestCodec, state.watchResponseCodec, true),
  watchNamespaces: encodedMethod(`/${controlName}/WatchNamespaces`, control.watchNamespacesRequestCodec, state.watchResponseCodec, true),
} as const;
