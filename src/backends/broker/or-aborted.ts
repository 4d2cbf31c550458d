import { addAbortListener } from 'node:events';

/** A promise, or what `reason` tells once a signal aborts first: its own reason unless said otherwise. The work itself goes on. */
export function orAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
  reason: (aborted: AbortSignal) => unknown = (aborted) => aborted.reason,
): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = addAbortListener(signal, () => reject(reason(signal)));
    promise.then(resolve, reject).finally(() => abort[Symbol.dispose]());
  });
}
