import { sameSet, sameValue } from '../resource/index.ts';
import type { Live, WorkloadView } from './port.ts';

/** Whether a change of a workload has to be reconciled: generation, deletion, finalizers, labels, annotations; not its own status. */
export function workloadChanged(old: WorkloadView | undefined, now: WorkloadView | undefined): boolean {
  if (old === undefined || now === undefined) return old !== now;
  return (
    old.uid !== now.uid ||
    old.generation !== now.generation ||
    old.deleting !== now.deleting ||
    !sameSet(old.finalizers, now.finalizers) ||
    !sameValue(old.labels, now.labels) ||
    !sameValue(old.annotations, now.annotations)
  );
}

/** Whether a change of a child has to be looked at: uid, deletion, generation, labels, annotations or status. */
export function childChanged(old: Live | undefined, now: Live | undefined): boolean {
  if (old === undefined || now === undefined) return old !== now;
  return (
    old.uid !== now.uid ||
    old.deleting !== now.deleting ||
    old.generation !== now.generation ||
    (old.generation === undefined && old.version !== now.version) ||
    !sameValue(old.labels, now.labels) ||
    !sameValue(old.annotations, now.annotations) ||
    !sameValue(old.status, now.status)
  );
}
