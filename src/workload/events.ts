import { boundedText } from '../resource/index.ts';
import { noteLimit } from './conditions.ts';
import type { ChildRef, WorkloadEvent } from './port.ts';
import type { ReconcileRequest, Reconciler } from './types.ts';

/** Tells what was done about a workload or one of its children: only ever what happened, never that nothing did. */
export function registerAction(
  reconciler: Pick<Reconciler, 'emit'>,
  request: Pick<ReconcileRequest, 'workload'>,
  reason: WorkloadEvent['reason'],
  related: ChildRef | undefined,
  note: string,
): void {
  reconciler.emit({
    regarding: request.workload.key,
    ...(related && { related }),
    type: reason === 'PruneBlocked' || reason === 'PhaseFailed' ? 'Warning' : 'Normal',
    reason,
    note: boundedText(note, noteLimit, '…'),
  });
}
