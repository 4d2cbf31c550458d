import type { WorkloadCollection, WorkloadRequest } from './define-workload.ts';
import { kindOfType } from './define-workload.ts';
import { pendingError } from './errors.ts';
import type { Live, StorePort } from './port.ts';
import type { ReconcileRequest } from './types.ts';

/**
 * The collection that a workload belongs to: the one that it names, else the only one that there is. Not there yet is
 * pending, not an error. A deletion never asks.
 */
export async function findCollection<Spec>(
  port: StorePort,
  request: ReconcileRequest,
  { definition, find }: WorkloadCollection<Spec>,
  own: WorkloadRequest<Spec>,
): Promise<Live> {
  const kind = kindOfType(definition.type);
  const named = find?.(own);
  if (named !== undefined) {
    const { name, namespace = request.workload.key.namespace } = named;
    const found = await port.get({ ...kind, version: '', namespace, name }, request.call);
    if (found === undefined) throw pendingError('CollectionNotFound', `the collection ${kind.kind} ${namespace}/${name} does not exist`);
    return found;
  }
  const all = await port.list(kind, request.call);
  const [first] = all;
  if (first === undefined) throw pendingError('CollectionNotFound', `there is no collection: no ${kind.kind} exists`);
  if (all.length > 1)
    throw pendingError('CollectionAmbiguous', `there are ${all.length} ${kind.kind}; name the one that this workload belongs to`);
  return first;
}
