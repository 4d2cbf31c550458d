import type { Codec } from './codec.ts';
import { decode, encode } from './codec.ts';

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

export function method<Request, Response>(
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

export function encodedMethod<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
  responseStream = false,
): EncodedMethod<Request, Response> {
  return { ...method(path, request, response, responseStream), responseSerialize: (bytes) => bytes };
}
