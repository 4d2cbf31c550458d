import { orphanFinalizer } from '../identity.ts';
import { removeChildren, waitingText } from '../prune.ts';
import { recoverInventory } from '../recover.ts';
import type { HandlerFunc } from '../types.ts';
import { saveStatus } from '../write-ahead.ts';

/**
 * Deletes the recorded children from the highest order down. Goes by the inventory only, never by the desired state. With
 * the finalizer `orphan` on the workload they are released instead, and live on.
 */
export const deleteResourcesPhase: HandlerFunc = async (reconciler, request) => {
  const { status, workload } = request;
  await recoverInventory(reconciler, request);
  if (!status.orphan && workload.finalizers.includes(orphanFinalizer)) {
    status.orphan = true;
    // A collector takes the finalizer away by itself; what it asked for must be on record by then.
    if (reconciler.port.caps.garbageCollector) await saveStatus(reconciler, request);
  }
  const { left } = await removeChildren(reconciler, request, status.children, status.orphan ? 'orphanAll' : 'onDelete');
  return left.length === 0 ? true : { proceed: false, reason: 'WaitingForDeletion', message: waitingText(left) };
};
