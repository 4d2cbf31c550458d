import { allowEmptyAnnotation, bearsMark, childKey, isParent, readParent, refOf } from './identity.ts';
import type { Desired, InventoryEntry, Live } from './port.ts';
import type { PhaseAnswer, ReconcileRequest, Reconciler } from './types.ts';

/** What is still to go. */
export interface Removal {
  readonly left: readonly { readonly entry: InventoryEntry; readonly live: Live }[];
}

/**
 * Removes children that are recorded and no longer desired, in reverse order, wave by wave. Losing all of them at once is
 * held back until the workload says that it is meant.
 */
export async function pruneChildren(reconciler: Reconciler, request: ReconcileRequest, children: readonly Desired[]): Promise<PhaseAnswer> {
  const { status } = request;
  const wanted = new Set(children.map((child) => childKey(child.ref)));
  const uids = new Set([...request.seen.values()].map((seen) => seen.live?.uid).filter((uid) => uid !== undefined && uid !== ''));
  const surplus = status.children.filter((entry) => !wanted.has(childKey(entry)));
  if (surplus.length === 0) return true;
  // The same object under another name of its kind: the entry is an old name, not another child.
  for (const entry of surplus) if (entry.uid !== '' && uids.has(entry.uid)) status.dropChild(entry);
  const left = surplus.filter((entry) => status.child(entry) !== undefined);
  if (left.length === 0) return true;
  if (wanted.size === 0 && request.workload.annotations[allowEmptyAnnotation] !== 'true') {
    const message = `no child is desired any more, but ${left.length} are recorded; if that is meant, set the annotation ${allowEmptyAnnotation}: "true"`;
    reconciler.emit({ regarding: request.workload.key, type: 'Warning', reason: 'PruneBlocked', note: message });
    return { proceed: false, reason: 'PruneBlocked', message };
  }
  const { left: remaining } = await removeChildren(reconciler, request, left, 'onPrune');
  return remaining.length === 0 ? true : { proceed: false, reason: 'Pruning', message: waitingText(remaining) };
}

export function waitingText(remaining: Removal['left']): string {
  return `waiting for ${remaining
    .map(
      ({ entry, live }) => `${entry.kind}/${entry.name}${live.finalizers.length > 0 ? ` (finalizers: ${live.finalizers.join(', ')})` : ''}`,
    )
    .join(', ')}`;
}

/** Takes the highest order that is still there, removes it, and goes on to the next when it is gone. */
export async function removeChildren(
  reconciler: Reconciler,
  request: ReconcileRequest,
  entries: readonly InventoryEntry[],
  policy: 'onPrune' | 'onDelete',
): Promise<Removal> {
  const orders = [...new Set(entries.map((entry) => entry.order))].sort((left, right) => right - left);
  for (const order of orders) {
    const left: { entry: InventoryEntry; live: Live }[] = [];
    const errors: unknown[] = [];
    for (const entry of entries.filter((candidate) => candidate.order === order)) {
      try {
        const live = await removeChild(reconciler, request, entry, policy);
        if (live !== undefined) left.push({ entry, live });
      } catch (error) {
        request.signal.throwIfAborted();
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
    if (left.length > 0) return { left };
  }
  return { left: [] };
}

/** One step towards the end of a child; answers it while it is still there. */
async function removeChild(
  reconciler: Reconciler,
  request: ReconcileRequest,
  entry: InventoryEntry,
  policy: 'onPrune' | 'onDelete',
): Promise<Live | undefined> {
  const { port } = reconciler;
  const { status, workload } = request;
  const call = { signal: request.signal };
  const ref = refOf(entry);
  const live = await port.get(ref, call);
  if (live === undefined) {
    status.dropChild(entry);
    return undefined;
  }
  const parent = readParent(live);
  const another = entry.uid !== '' && entry.uid !== live.uid;
  // The status can be edited by others, so the mark on the object itself decides too.
  if (!isParent(parent, workload.key) || (another && !bearsMark(live, workload.key))) {
    status.dropChild(entry);
    if (!another) {
      reconciler.emit({
        regarding: workload.key,
        related: ref,
        type: 'Warning',
        reason: 'PruneBlocked',
        note: `${entry.kind}/${entry.name} no longer bears this workload's mark; it is left alone`,
      });
    }
    return undefined;
  }
  if ((entry[policy] ?? 'delete') === 'orphan') {
    await port.release(ref, live.uid, { ...call, owner: workload.key });
    status.dropChild(entry);
    return undefined;
  }
  const outcome = await port.remove(ref, live.uid, { ...call, propagation: 'Foreground' });
  if (outcome === 'gone') {
    status.dropChild(entry);
    reconciler.emit({
      regarding: workload.key,
      related: ref,
      type: 'Normal',
      reason: 'Deleted',
      note: `deleted ${entry.kind}/${entry.name}`,
    });
    return undefined;
  }
  if (entry.state !== 'deleting')
    status.setChild({
      ...entry,
      uid: live.uid,
      state: 'deleting',
      ready: false,
      reason: 'Terminating',
      message: '',
      lastTransitionTime: reconciler.timestamp(),
    });
  return (await port.get(ref, call)) ?? live;
}
