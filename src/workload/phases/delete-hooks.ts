import type { ReconcileRequest, Reconciler } from '../types.ts';

/** Puts our finalizer on a workload that is not being deleted, so that its delete phases run before it goes. */
export async function registerDeleteHooks(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
  const { workload } = request;
  if (workload.deleting || workload.finalizers.includes(reconciler.finalizer)) return;
  request.workload = await reconciler.port.addFinalizer(workload, reconciler.finalizer, { signal: request.signal });
  request.status.observedVersion = request.workload.version;
}
