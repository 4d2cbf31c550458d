import { removeCondition, setCondition } from './conditions.ts';
import { terminalReason } from './errors.ts';
import type { Condition } from './port.ts';
import type { Outcome, Step } from './registry.ts';
import type { ReconcileRequest } from './types.ts';

/** Conditions of the engine itself. */
export const reservedConditions: readonly string[] = ['Ready', 'Reconciling', 'Stalled', 'Paused'];

type SetCondition = (type: string, status: Condition['status'], reason: string, message: string) => void;

/**
 * Writes each phase's outcome as a condition, and Ready, Reconciling and Stalled from all of them. Conditions of another
 * event, and of phases that are no longer registered, go.
 */
export function recordOutcomes(
  request: ReconcileRequest,
  timestamp: string,
  phases: readonly string[],
  steps: readonly Step[],
  outcome: Outcome,
): void {
  const { status, workload, ownConditions } = request;
  const before = status.conditions;
  const kept = (type: string): boolean => phases.includes(type) || ownConditions.has(type) || reservedConditions.includes(type);
  const conditions = before.filter(({ type }) => kept(type) && type !== 'Paused');
  const set: SetCondition = (type, value, reason, message) =>
    setCondition(conditions, { type, status: value, reason, message, observedGeneration: workload.generation }, timestamp);
  phases.forEach((name, index) => {
    const step = steps[index];
    if (step === undefined) set(name, 'Unknown', 'NotReached', '');
    else if (step.kind === 'completed') set(name, 'True', 'Complete', '');
    else if (step.kind === 'pending' || step.kind === 'unready') set(name, 'False', step.reason, step.message);
    else set(name, 'False', 'Failed', step.error.message);
  });
  recordReady(conditions, set, outcome);
  const place = ({ type }: Condition): number => {
    const phase = phases.indexOf(type);
    return phase >= 0 ? phase : phases.length + (reservedConditions.includes(type) ? 1 : 0);
  };
  status.conditions = conditions.sort((left, right) => place(left) - place(right));
}

/** Reconciling and Stalled never hold both. */
function recordReady(conditions: Condition[], set: SetCondition, outcome: Outcome): void {
  if (outcome.kind === 'completed') {
    set('Ready', 'True', 'Ready', '');
    removeCondition(conditions, 'Reconciling');
    removeCondition(conditions, 'Stalled');
  } else if (outcome.kind === 'terminal') {
    const reason = terminalReason(outcome.error) ?? 'Failed';
    set('Ready', 'False', reason, outcome.error.message);
    set('Stalled', 'True', reason, outcome.error.message);
    removeCondition(conditions, 'Reconciling');
  } else {
    const { reason, message } = outcome.kind === 'pending' ? outcome : { reason: 'Failed', message: outcome.error.message };
    set('Ready', 'False', reason, message);
    set('Reconciling', 'True', reason, message);
    removeCondition(conditions, 'Stalled');
  }
}
