import { isUnsupportedError } from '../resource/index.ts';
import { bearsMark, parentId, parentIdLabel } from './identity.ts';
import type { GroupKind, Live } from './port.ts';
import type { ReconcileRequest, Reconciler } from './types.ts';

/** Without a status (restored from a backup, say) the children are found again by their label. */
export async function recoverInventory(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
  if (!request.restored) return;
  const { key } = request.workload;
  let order = 0;
  for (const kind of reconciler.childKinds) {
    for (const live of await marked(reconciler, request, kind)) {
      if (!bearsMark(live, key) || request.status.child(live.ref) !== undefined) continue;
      request.status.setChild({
        ...live.ref,
        uid: live.uid,
        order: order++,
        digest: '',
        state: 'applied',
        ready: false,
        reason: 'Found',
        message: 'found by its label',
        lastTransitionTime: reconciler.timestamp(),
      });
    }
  }
  request.restored = false;
}

/** A kind that is not served has no objects. */
async function marked({ port }: Reconciler, { call, workload }: ReconcileRequest, kind: GroupKind): Promise<readonly Live[]> {
  try {
    return await port.list(kind, { ...call, fresh: true, labels: { [parentIdLabel]: parentId(workload.key) } });
  } catch (error) {
    if (isUnsupportedError(error)) return [];
    throw error;
  }
}
