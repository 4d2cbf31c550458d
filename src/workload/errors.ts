import { errorCode, findError, isVersionConflictError, thrownText } from '../resource/index.ts';

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

/**
 * The reason that a port gives a change which the store refuses because the field cannot change: `terminalError(immutableReason,
 * …)`. With `onImmutable: 'recreate'` the child is made anew.
 */
export const immutableReason = 'Immutable';

/** Not an error but "not yet", from code that can only throw. */
export class PendingError extends Error {
  override readonly name: string = 'PendingError';
  readonly reason: string;
  readonly requeueAfterMs: number | undefined;
  constructor(reason: string, message: string, requeueAfterMs?: number) {
    super(message);
    this.reason = reason;
    this.requeueAfterMs = requeueAfterMs;
  }
}

/** Throw it from `getResources` and the like when what is needed is not there yet: the phase does not proceed. */
export const pendingError = (reason: string, message: string, requeueAfterMs?: number): Error =>
  new PendingError(reason, message, requeueAfterMs);

/** An author's function did not end in time. A failure like another: it says something about the workload. */
export class DeadlineError extends Error {
  override readonly name: string = 'DeadlineError';
}

/** Several children failed: their errors, all of them. */
export class ChildrenError extends Error {
  override readonly name: string = 'ChildrenError';
  readonly errors: readonly Error[];
  constructor(errors: readonly Error[]) {
    super(errors.map((error) => error.message).join('; '), { cause: errors[0] });
    this.errors = errors;
  }
}

/** One error as it is, several as a `ChildrenError`. */
export function joinErrors(errors: readonly Error[]): Error {
  return errors.length === 1 ? (errors[0] as Error) : new ChildrenError(errors);
}

/** A phase failed, and then its status could not be written: the phase's own error first. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  readonly errors: readonly [phase: Error, status: Error];
  constructor(phase: Error, status: Error) {
    super(`${phase.message} (and the status could not be written: ${status.message})`, { cause: phase });
    this.errors = [phase, status];
  }
}

/** What an error stands for. */
export type ErrorClass = 'terminal' | 'conflict' | 'transient' | 'failed';

export function classify(error: unknown): ErrorClass {
  if (error instanceof ChildrenError) {
    const classes = new Set(error.errors.map(classify));
    if (classes.size === 1) return [...classes][0] as ErrorClass;
    // A terminal one beside others is no reason to leave the others without another try.
    return [...classes].every((found) => found === 'conflict' || found === 'transient') ? 'transient' : 'failed';
  }
  if (terminalReason(error) !== undefined) return 'terminal';
  if (isVersionConflictError(error)) return 'conflict';
  const code = errorCode(error);
  return code === 'Unavailable' || code === 'Throttled' || code === 'Timeout' || code === 'Ambiguous' ? 'transient' : 'failed';
}

/**
 * Whether an error says that somebody else wrote meanwhile, so that reading again is all there is to do: a version conflict
 * of the store, and nothing else. That something exists already, or is another incarnation, is not one.
 */
export function isOptimisticLockError(error: unknown): boolean {
  return error !== undefined && error !== null && classify(error) === 'conflict';
}

/** The reason of a terminal error; `undefined` for others. What the store calls invalid stays so until somebody changes it. */
export function terminalReason(error: unknown): string | undefined {
  const seen = new Set<unknown>();
  for (let current = error; typeof current === 'object' && current !== null && !seen.has(current); ) {
    seen.add(current);
    const { name, reason, cause } = current as { name?: unknown; reason?: unknown; cause?: unknown };
    if (name === 'TerminalError' && typeof reason === 'string') return reason;
    if (current instanceof ChildrenError) return terminalReason(current.errors[0]);
    current = cause;
  }
  return errorCode(error) === 'Invalid' ? 'Invalid' : undefined;
}

/** How long the store asked to be left alone, milliseconds. */
export function retryAfterMs(error: unknown): number | undefined {
  if (!(error instanceof ChildrenError)) return findError(error)?.retryAfterMs;
  const waits = error.errors.map(retryAfterMs).filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : Math.max(...waits);
}

export function asError(error: unknown): Error {
  return error instanceof Error && typeof error.message === 'string' ? error : new Error(thrownText(error), { cause: error });
}
