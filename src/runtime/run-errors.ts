/** Asks to run a key again after its own interval, without advancing its back-off. */
export class RequeueError extends Error {
  override readonly name: string = 'RequeueError';
  readonly afterMs: number;
  constructor(afterMs: number, cause?: unknown) {
    super(cause instanceof Error ? cause.message : `run again after ${afterMs} ms`, cause === undefined ? undefined : { cause });
    this.afterMs = afterMs;
  }
}

/** Ends a run without success and without a retry; the back-off is cleared. */
export class SkipError extends Error {
  override readonly name: string = 'SkipError';
  constructor(cause?: unknown) {
    super(cause instanceof Error ? cause.message : 'skipped', cause === undefined ? undefined : { cause });
  }
}

/** Throw it to run the key again after `afterMs`; with a cause it is logged and counted as a failure. */
export const requeueError = (afterMs: number, cause?: unknown): Error => new RequeueError(afterMs, cause);

/** Throw it to give a key up until its next change. */
export const skipError = (cause?: unknown): Error => new SkipError(cause);
