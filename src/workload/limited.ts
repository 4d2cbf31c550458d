import type { Environment } from '../environment/index.ts';
import { DeadlineError } from './errors.ts';

/** An author's function, which ends at its deadline and with the reconcile, whatever it does itself. */
export async function limited<Value>(
  environment: Pick<Environment, 'after'>,
  what: string,
  deadlineMs: number,
  signal: AbortSignal,
  work: () => Promise<Value> | Value,
): Promise<Value> {
  signal.throwIfAborted();
  const started = work();
  if (!isPromise(started)) return started;
  let end: (() => void) | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const timer = environment.after(deadlineMs, () =>
      reject(new DeadlineError(`${what} did not end within ${deadlineMs} ms; look for what it waits for`)),
    );
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    end = () => {
      timer[Symbol.dispose]();
      signal.removeEventListener('abort', onAbort);
    };
  });
  try {
    return await Promise.race([started, late]);
  } finally {
    end?.();
  }
}

function isPromise<Value>(value: Promise<Value> | Value): value is Promise<Value> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
