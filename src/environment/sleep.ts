import { addAbortListener } from 'node:events';

/** Sleeps on a timer of an environment; the timer goes when the signal aborts. */
export function sleepOn(
  after: (delayMs: number, callback: () => void) => Disposable,
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    let listener: Disposable | undefined;
    const timer = after(delayMs, () => {
      listener?.[Symbol.dispose]();
      resolve();
    });
    if (signal !== undefined) {
      listener = addAbortListener(signal, () => {
        timer[Symbol.dispose]();
        listener?.[Symbol.dispose]();
        reject(signal.reason as Error);
      });
    }
  });
}
