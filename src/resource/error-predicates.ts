import type { ConflictReason, ErrorCode, SteadystateError } from './errors.ts';
import type { Kind } from './resource.ts';

const codes: ReadonlySet<string> = new Set<ErrorCode>([
  'NotFound',
  'Conflict',
  'InvalidBookmark',
  'Unsupported',
  'Invalid',
  'Ambiguous',
  'Unavailable',
  'NoSpace',
  'Corrupt',
  'Forbidden',
  'Unauthenticated',
  'Throttled',
  'Locked',
  'Timeout',
  'Gone',
  'Closed',
]);

/** Whether text from elsewhere is the code of an error that is known here. */
export function isErrorCode(text: string): text is ErrorCode {
  return codes.has(text);
}

/**
 * The first error of the family in a chain of causes; `undefined` when there is none. Goes by name and code, not by
 * class, so that it sees errors of another copy of this package.
 */
export function findError(error: unknown): SteadystateError | undefined {
  const seen = new Set<unknown>();
  let current = error;
  while (typeof current === 'object' && current !== null && !seen.has(current)) {
    seen.add(current);
    const candidate = current as { name?: unknown; code?: unknown; cause?: unknown };
    if (candidate.name === 'SteadystateError' && typeof candidate.code === 'string' && codes.has(candidate.code)) {
      return current as SteadystateError;
    }
    current = candidate.cause;
  }
  return undefined;
}

/** The code of the first error of the family in a chain of causes. */
export function errorCode(error: unknown): ErrorCode | undefined {
  return findError(error)?.code;
}

function hasCode(error: unknown, code: ErrorCode): boolean {
  return findError(error)?.code === code;
}

function isConflictOf(error: unknown, reason: ConflictReason): boolean {
  const found = findError(error);
  return found?.code === 'Conflict' && found.reason === reason;
}

/** Any conflict, owner and phase conflicts too; narrowed to a namespace or type when given. */
export function isConflictError(error: unknown, about: Partial<Kind> = {}): boolean {
  const found = findError(error);
  if (found?.code !== 'Conflict') return false;
  if (about.namespace !== undefined && found.pointer?.namespace !== about.namespace) return false;
  return about.type === undefined || found.pointer?.type === about.type;
}

export const isNotFoundError = (error: unknown): boolean => hasCode(error, 'NotFound');
export const isAlreadyExistsError = (error: unknown): boolean => isConflictOf(error, 'alreadyExists');
export const isVersionConflictError = (error: unknown): boolean => isConflictOf(error, 'version');
export const isIncarnationConflictError = (error: unknown): boolean => isConflictOf(error, 'incarnation');
export const isPendingFinalizersError = (error: unknown): boolean => isConflictOf(error, 'pendingFinalizers');
export const isOwnerConflictError = (error: unknown): boolean => isConflictOf(error, 'owner');
export const isPhaseConflictError = (error: unknown): boolean => isConflictOf(error, 'phase');
export const isInvalidBookmarkError = (error: unknown): boolean => hasCode(error, 'InvalidBookmark');
export const isUnsupportedError = (error: unknown): boolean => hasCode(error, 'Unsupported');
export const isInvalidError = (error: unknown): boolean => hasCode(error, 'Invalid');
export const isAmbiguousError = (error: unknown): boolean => hasCode(error, 'Ambiguous');
export const isUnavailableError = (error: unknown): boolean => hasCode(error, 'Unavailable');
export const isNoSpaceError = (error: unknown): boolean => hasCode(error, 'NoSpace');
export const isCorruptError = (error: unknown): boolean => hasCode(error, 'Corrupt');
export const isForbiddenError = (error: unknown): boolean => hasCode(error, 'Forbidden');
export const isUnauthenticatedError = (error: unknown): boolean => hasCode(error, 'Unauthenticated');
export const isThrottledError = (error: unknown): boolean => hasCode(error, 'Throttled');
export const isLockedError = (error: unknown): boolean => hasCode(error, 'Locked');
export const isTimeoutError = (error: unknown): boolean => hasCode(error, 'Timeout');
export const isGoneError = (error: unknown): boolean => hasCode(error, 'Gone');
export const isClosedError = (error: unknown): boolean => hasCode(error, 'Closed');
