import type { ConflictReason, ErrorDetails, Kind, Pointer, ResourcePhase } from '../resource/index.ts';
import { pointerText, SteadystateError, visibleText } from '../resource/index.ts';

function conflict(reason: ConflictReason, pointer: Pointer, message: string): SteadystateError {
  return new SteadystateError('Conflict', message, { pointer, reason });
}

export function notFound(pointer: Pointer): SteadystateError {
  return new SteadystateError('NotFound', `${pointerText(pointer)} does not exist`, { pointer });
}

export function alreadyExists(pointer: Pointer): SteadystateError {
  return conflict('alreadyExists', pointer, `${pointerText(pointer)} already exists; update it, or choose another id`);
}

export function versionConflict(pointer: Pointer, expected: string, found: string): SteadystateError {
  return conflict(
    'version',
    pointer,
    `${pointerText(pointer)} was changed meanwhile: expected version ${visibleText(expected)}, found ${found}; read it again`,
  );
}

export function incarnationConflict(pointer: Pointer, expected: string, found: string): SteadystateError {
  return conflict(
    'incarnation',
    pointer,
    `${pointerText(pointer)} is another incarnation: expected uid ${visibleText(expected)}, found ${found}`,
  );
}

export function ownerConflict(pointer: Pointer, given: string, stored: string): SteadystateError {
  const found = stored === '' ? 'nobody owns it' : `it is owned by ${visibleText(stored)}`;
  return conflict(
    'owner',
    pointer,
    `${pointerText(pointer)} may only be changed by its owner: ${found}, the call came from ${given === '' ? 'nobody' : visibleText(given)}`,
  );
}

export function phaseConflict(pointer: Pointer, expected: ResourcePhase, found: ResourcePhase): SteadystateError {
  return conflict('phase', pointer, `${pointerText(pointer)} is in phase ${found}, expected ${expected}`);
}

export function pendingFinalizers(pointer: Pointer, finalizers: readonly string[]): SteadystateError {
  return conflict(
    'pendingFinalizers',
    pointer,
    `${pointerText(pointer)} cannot be destroyed: finalizers are pending: ${visibleText(finalizers.join(', '))}`,
  );
}

export function invalidBookmark(message: string): SteadystateError {
  return new SteadystateError('InvalidBookmark', `${message}; list again and watch from there`);
}

export function unsupported(message: string, details: ErrorDetails = {}): SteadystateError {
  return new SteadystateError('Unsupported', message, details);
}

export function ambiguous(pointer: Pointer | undefined, message: string, cause?: unknown): SteadystateError {
  const about = pointer === undefined ? '' : `${pointerText(pointer)}: `;
  return new SteadystateError('Ambiguous', `${about}the outcome of the write is unknown: ${message}; read before you write again`, {
    ...(pointer && { pointer }),
    cause,
  });
}

export function unavailable(message: string, cause?: unknown): SteadystateError {
  return new SteadystateError('Unavailable', message, { cause });
}

export function forbidden(message: string, details: ErrorDetails = {}): SteadystateError {
  return new SteadystateError('Forbidden', message, details);
}

export function unauthenticated(message: string, details: ErrorDetails = {}): SteadystateError {
  return new SteadystateError('Unauthenticated', message, details);
}

export function throttled(message: string, retryAfterMs: number, details: ErrorDetails = {}): SteadystateError {
  return new SteadystateError('Throttled', message, { ...details, retryAfterMs });
}

export function gone(pointer: Pointer, message: string): SteadystateError {
  return new SteadystateError('Gone', `${pointerText(pointer)} ${message}`, { pointer });
}

export function timeout(message: string, details: ErrorDetails = {}): SteadystateError {
  return new SteadystateError('Timeout', message, details);
}

export function closed(message: string): SteadystateError {
  return new SteadystateError('Closed', message);
}

export function corrupt(message: string, cause?: unknown): SteadystateError {
  return new SteadystateError('Corrupt', message, { cause });
}

export function noSpace(message: string, cause?: unknown): SteadystateError {
  return new SteadystateError('NoSpace', message, { cause });
}

export function locked(message: string, holder: string): SteadystateError {
  return new SteadystateError('Locked', message, { holder });
}

/** An error about a kind as a whole. */
export function kindForbidden(kind: Kind, message: string): SteadystateError {
  return new SteadystateError('Forbidden', message, { kind: { namespace: kind.namespace, type: kind.type } });
}
