import type { Desired, GroupKind, InventoryEntry, StorePort, WorkloadView } from '../port.ts';
import type { ReconcileRequest, Reconciler } from '../types.ts';

/**
 * Puts our finalizer on a workload that is not being deleted, so that its delete phases run before it goes; only if
 * something needs it: a delete phase of the author's own, or a child that no collector can or must take.
 */
export async function registerDeleteHooks(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
  const { workload } = request;
  if (workload.deleting || workload.finalizers.includes(reconciler.finalizer)) return;
  if (!(await needsFinalizer(reconciler, request))) return;
  request.workload = await reconciler.port.addFinalizer(workload, reconciler.finalizer, request.call);
  request.status.observedVersion = request.workload.version;
}

async function needsFinalizer({ port, childKinds, ownDeletePhases }: Reconciler, request: ReconcileRequest): Promise<boolean> {
  if (ownDeletePhases) return true;
  if (!port.caps.garbageCollector) return childKinds.length > 0;
  if (request.status.children.some((entry) => escapesCollector(port, request.workload, entry, entry.onDelete))) return true;
  const children = await request.resources().catch(() => undefined);
  // Children that cannot be computed now may be of any sort; a finalizer too many does no harm.
  if (children === undefined) return true;
  return children.some(
    ({ ref, options }: Desired) => options?.deletionOrder !== undefined || escapesCollector(port, request.workload, ref, options?.onDelete),
  );
}

/** Whether a collector cannot take a child with its parent, or must not. */
function escapesCollector(
  { caps }: StorePort,
  { key }: WorkloadView,
  ref: GroupKind & { readonly namespace: string },
  onDelete: InventoryEntry['onDelete'],
): boolean {
  if (!caps.ownerReferences || onDelete === 'orphan') return true;
  return key.namespace !== '' && ref.namespace !== key.namespace;
}
