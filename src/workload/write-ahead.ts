import type { Desired } from './port.ts';
import type { ReconcileRequest, Reconciler } from './types.ts';

/** Records identities before the first apply, so that a crash leaks no child. One write, and only when there is a new one. */
export async function writeAhead(reconciler: Reconciler, request: ReconcileRequest, children: readonly Desired[]): Promise<void> {
  const { status } = request;
  let added = false;
  for (const child of children) {
    const entry = status.child(child.ref);
    const order = child.order ?? child.options?.deletionOrder ?? 0;
    const { onPrune, onDelete } = child.options ?? {};
    const policies = { ...(onPrune && { onPrune }), ...(onDelete && { onDelete }) };
    if (entry === undefined) {
      added = true;
      status.setChild({
        ...child.ref,
        uid: '',
        order,
        digest: '',
        state: 'intended',
        ready: false,
        reason: 'NotFound',
        message: '',
        lastTransitionTime: reconciler.timestamp(),
        ...policies,
      });
    } else if (entry.order !== order || entry.onPrune !== onPrune || entry.onDelete !== onDelete) {
      const { onPrune: _prune, onDelete: _delete, ...rest } = entry;
      status.setChild({ ...rest, order, ...policies });
    }
  }
  if (added) await saveStatus(reconciler, request);
}

/**
 * Writes the inventory and what the author keeps in `extra`, now: for what has to be on record before an effect. Conditions
 * stay as they are until the end of the reconcile.
 */
export async function saveStatus(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
  const next = request.status.writeAhead();
  request.workload = await reconciler.port.writeStatus(request.workload, next, request.call);
  request.status.markWritten(next);
}
