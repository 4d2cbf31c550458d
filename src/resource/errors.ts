import type { Pointer } from './resource.ts';

/** Every way in which a call can fail, told apart by `code`. */
export type ErrorCode =
  | 'NotFound'
  | 'Conflict'
  | 'InvalidBookmark'
  | 'Unsupported'
  | 'Invalid'
  | 'Ambiguous'
  | 'Unavailable'
  | 'NoSpace'
  | 'Corrupt'
  | 'Forbidden'
  | 'Unauthenticated'
  | 'Throttled'
  | 'Locked'
  | 'Timeout'
  | 'Gone'
  | 'Closed';

export type ConflictReason = 'alreadyExists' | 'version' | 'incarnation' | 'pendingFinalizers' | 'owner' | 'phase';

/** One thing wrong with an input: where (a path such as `spec.services.api.command[0]`) and what to do. */
export interface InvalidIssue {
  readonly path: string;
  readonly message: string;
}

export interface ErrorDetails {
  /** Its namespace, type and id are kept, and nothing else that it may carry. */
  readonly pointer?: Pointer;
  readonly cause?: unknown;
  /** Of a Conflict. */
  readonly reason?: ConflictReason;
  /** Of Invalid. */
  readonly issues?: readonly InvalidIssue[];
  /** Of Throttled. */
  readonly retryAfterMs?: number;
  /** Of Locked: who holds the lock, in words (`pid 4711 on host-a since …`). */
  readonly holder?: string;
  /** Of Unsupported about a kind that is not served. */
  readonly kind?: { readonly group: string; readonly kind: string } | { readonly namespace: string; readonly type: string };
}

/** The one error class. `message` names the resource, what was expected, what was found, and what to do. */
export class SteadystateError extends Error {
  override readonly name: string = 'SteadystateError';
  readonly code: ErrorCode;
  readonly pointer: Pointer | undefined;
  readonly reason: ConflictReason | undefined;
  readonly issues: readonly InvalidIssue[];
  readonly retryAfterMs: number | undefined;
  readonly holder: string | undefined;
  readonly kind: ErrorDetails['kind'];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.pointer = details.pointer && bare(details.pointer);
    this.reason = details.reason;
    this.issues = details.issues ?? [];
    this.retryAfterMs = details.retryAfterMs;
    this.holder = details.holder;
    this.kind = details.kind;
  }
}

function bare({ namespace, type, id }: Pointer): Pointer {
  return { namespace, type, id };
}
