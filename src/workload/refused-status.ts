import { isInvalidError, thrownText } from '../resource/index.ts';
import { findCondition, removeCondition, setCondition } from './conditions.ts';
import { registerAction } from './events.ts';
import type { ReconcileRequest, Reconciler } from './types.ts';

/** Why a status that the store refused cannot be written. */
const reason = 'InvalidStatus';

/**
 * Puts in place of a status that the store cannot hold, which is what the author keeps in `extra`, the one before with the reason
 * in it: else nobody would ever see one. Answers whether `error` is such a refusal.
 */
export function replaceRefused(reconciler: Reconciler, request: ReconcileRequest, error: unknown): boolean {
  if (!isInvalidError(error)) return false;
  const { status, workload } = request;
  const { written } = status;
  const isNews = findCondition(written?.conditions ?? [], 'Ready')?.reason !== reason;
  status.extra = { ...written?.extra };
  status.conditions = [...(written?.conditions ?? [])];
  const message = `the status cannot be written: ${thrownText(error)}; what is kept in extra is plain data`;
  for (const [type, value] of [
    ['Ready', 'False'],
    ['Stalled', 'True'],
  ] as const)
    setCondition(
      status.conditions,
      { type, status: value, reason, message, observedGeneration: workload.generation },
      reconciler.timestamp(),
    );
  removeCondition(status.conditions, 'Reconciling');
  if (isNews) registerAction(reconciler, request, 'PhaseFailed', undefined, message);
  return true;
}
