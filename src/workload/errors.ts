import { errorCode, isVersionConflictError, SteadystateError } from '../resource/index.ts';

/** An error that another try cannot mend: Stalled instead of a retry. */
export class TerminalError extends Error {
  override readonly name: string = 'TerminalError';
  readonly reason: string;
  constructor(reason: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** Throw it from a phase when only a change of the workload can help. */
export const terminalError = (reason: string, message: string, cause?: unknown): Error => new TerminalError(reason, message, cause);

/** Several children failed: their errors, all of them. */
export class ChildrenError extends Error {
  override readonly name: string = 'ChildrenError';
  readonly errors: readonly Error[];
  constructor(errors: readonly Error[]) {
    super(errors.map((error) => error.message).join('; '), { cause: errors[0] });
    this.errors = errors;
  }
}

/** Whether an error says that somebody else wrote meanwhile: a version conflict of the store, and nothing else. */
export function isOptimisticLockError(error: unknown): boolean {
  if (error === undefined || error === null) return false;
  if (error instanceof ChildrenError) return error.errors.every(isOptimisticLockError);
  return isVersionConflictError(error);
}

/** Errors that go away by themselves: the conditions are left alone for the first ones in a row. */
export function isTransientError(error: unknown): boolean {
  if (error instanceof ChildrenError) return error.errors.every(isTransientError);
  const code = errorCode(error);
  return code === 'Unavailable' || code === 'Throttled' || code === 'Timeout' || code === 'Ambiguous';
}

export function isTerminalError(error: unknown): error is TerminalError {
  if (error instanceof TerminalError) return true;
  return error instanceof ChildrenError && error.errors.some((child) => child instanceof TerminalError);
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new SteadystateError('Unavailable', String(error));
}
