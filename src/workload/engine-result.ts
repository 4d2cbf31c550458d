import type { PhaseResult } from './types.ts';

/** A result that asks for a back-off without saying how long, milliseconds. */
const backoffMs = 1_000;

/** What a reconcile asks its controller for. */
export type EngineResult =
  | { readonly kind: 'none' }
  /** The workload was not there at the start. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'requeue'; readonly afterMs: number }
  /** A failure: the key's own back-off, unless it says how long. Quiet ones are not logged. */
  | { readonly kind: 'failure'; readonly error: Error; readonly quiet: boolean; readonly afterMs?: number };

export const none: EngineResult = Object.freeze({ kind: 'none' });
export const gone: EngineResult = Object.freeze({ kind: 'gone' });

/** No time at all means to wait for an event, never to run at once and never that all is done. */
export function fromResult(result: PhaseResult): EngineResult {
  if (result === undefined) return none;
  const afterMs = result === 'backoff' ? backoffMs : result.requeueAfterMs;
  return afterMs > 0 ? { kind: 'requeue', afterMs } : none;
}

/** The same, but not later than that. Failures keep their own time. */
export function sooner(result: EngineResult, afterMs: number | undefined): EngineResult {
  if (result.kind === 'failure' || afterMs === undefined) return result;
  return { kind: 'requeue', afterMs: result.kind === 'requeue' ? Math.min(result.afterMs, afterMs) : afterMs };
}
