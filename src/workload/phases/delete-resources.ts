import { bearsMark, orphanFinalizer, parentId, parentIdLabel } from '../identity.ts';
import { removeChildren, waitingText } from '../prune.ts';
import type { HandlerFunc, ReconcileRequest, Reconciler } from '../types.ts';

/** Deletes the recorded children from the highest order down. Goes by the inventory only, never by the desired state. */
export const deleteResourcesPhase: HandlerFunc = async (reconciler, request) => {
  if (request.workload.finalizers.includes(orphanFinalizer)) return true;
  if (request.status.written === undefined) await recoverInventory(reconciler, request);
  const { left } = await removeChildren(reconciler, request, request.status.children, 'onDelete');
  return left.length === 0 ? true : { proceed: false, reason: 'WaitingForDeletion', message: waitingText(left) };
};

/** Without a status (restored from a backup, say) the children are found again by their label. */
async function recoverInventory(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
  const { key } = request.workload;
  let order = 0;
  for (const kind of reconciler.childKinds) {
    for (const live of await reconciler.port.list(kind, { signal: request.signal, labels: { [parentIdLabel]: parentId(key) } })) {
      if (!bearsMark(live, key)) continue;
      request.status.setChild({
        ...live.ref,
        uid: live.uid,
        order: order++,
        digest: '',
        state: 'applied',
        ready: false,
        reason: 'Unknown',
        message: '',
        lastTransitionTime: reconciler.timestamp(),
      });
    }
  }
}
