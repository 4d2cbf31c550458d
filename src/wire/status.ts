import type { ErrorCode, Pointer, SteadystateError } from '../resource/index.ts';
import { SteadystateError as ErrorClass, findError, isErrorCode } from '../resource/index.ts';
import type { Codec } from './codec.ts';
import { bytes, decode, encode, int32, message, nested, repeated, text, textMap } from './codec.ts';

/** gRPC status codes, by their numbers. */
export const grpcCodes = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export type CallName = 'get' | 'list' | 'create' | 'update' | 'destroy' | 'watch' | 'teardown' | 'teardownAndDestroy' | 'control';

/** Trailing metadata with the details of an error. */
export const statusDetailsKey = 'grpc-status-details-bin';
/** Trailing metadata of a list: the revision of the snapshot. */
export const revisionKey = 'steadystate-revision';
const errorInfoType = 'type.googleapis.com/google.rpc.ErrorInfo';
const domain = 'steadystate';

interface Any {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}
const statusCodec: Codec<{ readonly code: number; readonly message: string; readonly details: readonly Any[] }> = message({
  code: int32(1),
  message: text(2),
  details: repeated(nested(3, message<Any>({ typeUrl: text(1), value: bytes(2) }))),
});
const errorInfoCodec: Codec<{ readonly reason: string; readonly domain: string; readonly metadata: Readonly<Record<string, string>> }> =
  message({
    reason: text(1),
    domain: text(2),
    metadata: textMap(3),
  });

export interface WireStatus {
  readonly code: number;
  readonly message: string;
  /** The bytes of `grpc-status-details-bin`. */
  readonly details: Buffer;
}

/** The status of an error of one call: codes as COSI clients read them, and details from which ours rebuilds the error. */
export function toStatus(error: unknown, call: CallName): WireStatus {
  const known = findError(error) ?? unexpected(error, call);
  const code = statusCode(known, call);
  const info = encode(errorInfoCodec, { reason: known.code, domain, metadata: detailsOf(known) });
  // Headers must stay small: a long list of issues is cut, the code and the pointer are not.
  const brief = known.message.length > 4_000 ? `${known.message.slice(0, 4_000)}…` : known.message;
  return {
    code,
    message: brief,
    details: encode(statusCodec, { code, message: brief, details: [{ typeUrl: errorInfoType, value: info }] }),
  };
}

/** An error that nobody foresaw: of a write it is not known whether it happened. */
function unexpected(error: unknown, call: CallName): SteadystateError {
  const said = error instanceof Error ? error.message : String(error);
  return new ErrorClass(mutations.has(call) ? 'Ambiguous' : 'Unavailable', `the server failed: ${said}`);
}

function statusCode(error: SteadystateError, call: CallName): number {
  switch (error.code) {
    case 'NotFound':
      return grpcCodes.notFound;
    case 'Conflict':
      if (error.reason === 'owner') return grpcCodes.permissionDenied;
      if (error.reason === 'alreadyExists') return grpcCodes.alreadyExists;
      // A Go client reads INVALID_ARGUMENT on Update as a phase conflict, so nothing else may say it.
      if (error.reason === 'phase' && call === 'update') return grpcCodes.invalidArgument;
      return grpcCodes.failedPrecondition;
    case 'InvalidBookmark':
      return grpcCodes.failedPrecondition;
    case 'Invalid':
      return call === 'update' ? grpcCodes.unknown : grpcCodes.invalidArgument;
    case 'Unsupported':
      return call === 'teardown' || call === 'teardownAndDestroy' ? grpcCodes.invalidArgument : grpcCodes.unimplemented;
    case 'Ambiguous':
      return grpcCodes.unknown;
    case 'NoSpace':
    case 'Throttled':
      return grpcCodes.resourceExhausted;
    case 'Corrupt':
      return grpcCodes.dataLoss;
    case 'Forbidden':
      return grpcCodes.permissionDenied;
    case 'Unauthenticated':
      return grpcCodes.unauthenticated;
    case 'Timeout':
      return grpcCodes.deadlineExceeded;
    case 'Gone':
      return grpcCodes.aborted;
    default:
      return grpcCodes.unavailable;
  }
}

function detailsOf(error: SteadystateError): Readonly<Record<string, string>> {
  const { pointer, reason, retryAfterMs, holder, issues, kind } = error;
  const brief = issues.slice(0, 20).map(({ path, message: said }) => ({ path: path.slice(0, 300), message: said.slice(0, 500) }));
  return {
    ...(pointer && { namespace: pointer.namespace, type: pointer.type, id: pointer.id }),
    ...(reason && { reason }),
    ...(retryAfterMs !== undefined && { retryAfterMs: String(retryAfterMs) }),
    ...(holder !== undefined && { holder }),
    ...(kind && { kind: JSON.stringify(kind) }),
    ...(brief.length > 0 && { issues: JSON.stringify(brief) }),
  };
}

/** What a client knows of the call that failed. */
export interface FailedCall {
  readonly call: CallName;
  readonly pointer?: Pointer;
  /** The server may have received it. */
  readonly sent: boolean;
}

const mutations: ReadonlySet<CallName> = new Set(['create', 'update', 'destroy', 'teardown', 'teardownAndDestroy']);

/** The error of a status: rebuilt exactly from its details, or read as a COSI server means it. */
export function fromStatus(
  status: { readonly code: number; readonly message: string; readonly details?: Uint8Array | undefined },
  failed: FailedCall,
): SteadystateError {
  const rebuilt = status.details === undefined ? undefined : rebuild(status.message, status.details);
  if (rebuilt !== undefined) return rebuilt;
  const { pointer } = failed;
  const about = pointer === undefined ? {} : { pointer };
  const make = (code: ErrorCode, more: ConstructorParameters<typeof ErrorClass>[2] = {}): SteadystateError =>
    new ErrorClass(code, status.message, { ...about, ...more });
  const unclear: readonly number[] = [
    grpcCodes.unavailable,
    grpcCodes.deadlineExceeded,
    grpcCodes.cancelled,
    grpcCodes.internal,
    grpcCodes.unknown,
    grpcCodes.resourceExhausted,
  ];
  if (failed.sent && mutations.has(failed.call) && unclear.includes(status.code)) {
    return new ErrorClass('Ambiguous', `the outcome of the write is unknown: ${status.message}; read before you write again`, about);
  }
  switch (status.code) {
    case grpcCodes.notFound:
      return make('NotFound');
    case grpcCodes.alreadyExists:
      return make('Conflict', { reason: 'alreadyExists' });
    case grpcCodes.permissionDenied:
      return mutations.has(failed.call) ? make('Conflict', { reason: 'owner' }) : make('Forbidden');
    case grpcCodes.invalidArgument:
      return failed.call === 'update' ? make('Conflict', { reason: 'phase' }) : make('Invalid');
    case grpcCodes.failedPrecondition:
      if (failed.call === 'watch') return make('InvalidBookmark');
      return make('Conflict', { reason: failed.call === 'destroy' ? 'pendingFinalizers' : 'version' });
    case grpcCodes.unimplemented:
      return make('Unsupported');
    case grpcCodes.resourceExhausted:
      return make('NoSpace');
    case grpcCodes.dataLoss:
      return make('Corrupt');
    case grpcCodes.unauthenticated:
      return make('Unauthenticated');
    case grpcCodes.deadlineExceeded:
      return make('Timeout');
    default:
      return make('Unavailable');
  }
}

function rebuild(said: string, details: Uint8Array): SteadystateError | undefined {
  try {
    for (const { typeUrl, value } of decode(statusCodec, details).details) {
      if (typeUrl !== errorInfoType) continue;
      const info = decode(errorInfoCodec, value);
      if (info.domain !== domain) continue;
      const code = info.reason;
      // Of a newer server: its status says what of it can be understood here.
      if (!isErrorCode(code)) continue;
      const { namespace, type, id, reason, retryAfterMs, holder, issues, kind } = info.metadata;
      return new ErrorClass(code, said, {
        ...(namespace !== undefined && type !== undefined && id !== undefined && { pointer: { namespace, type, id } }),
        ...(reason !== undefined && { reason: reason as never }),
        ...(retryAfterMs !== undefined && { retryAfterMs: Number(retryAfterMs) }),
        ...(holder !== undefined && { holder }),
        ...(kind !== undefined && { kind: JSON.parse(kind) as never }),
        ...(issues !== undefined && { issues: JSON.parse(issues) as never }),
      });
    }
  } catch {
    // Details that cannot be read tell nothing; the status itself does.
  }
  return undefined;
}
