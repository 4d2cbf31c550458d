/** Asks to run a key again after its own interval, without advancing its back-off. */
export class RequeueError extends Error {
  override readonly name: string = 'RequeueError';
  readonly afterMs: number;
  /** RangeError when the interval is no finite number from 0. */
  constructor(afterMs: number, cause?: unknown) {
    super(cause instanceof Error ? cause.message : `run again after ${afterMs} ms`, cause === undefined ? undefined : { cause });
    if (!isDelay(afterMs)) throw new RangeError(`a requeue needs a finite number of milliseconds from 0, found ${afterMs}`);
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

/** The first of them in a chain of causes, by name, so that it may come from another copy of this package. */
export const requeueOf = (error: unknown): RequeueError | undefined => {
  const found = findNamed(error, 'RequeueError') as RequeueError | undefined;
  return found !== undefined && isDelay(found.afterMs) ? found : undefined;
};
export const skipOf = (error: unknown): SkipError | undefined => findNamed(error, 'SkipError') as SkipError | undefined;

export function isDelay(ms: unknown): ms is number {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
}

function findNamed(error: unknown, name: string): Error | undefined {
  const seen = new Set<unknown>();
  for (let current = error; current instanceof Error && !seen.has(current); current = current.cause) {
    if (current.name === name) return current;
    seen.add(current);
  }
  return undefined;
}
