import { isForbiddenError, isInvalidError, isUnsupportedError } from '../resource/index.ts';
import { typeOfKind } from './define-workload.ts';
import { asError, joinErrors, terminalError } from './errors.ts';
import { registerAction } from './events.ts';
import { allowEmptyAnnotation, bearsMark, childKey, readParent, refOf } from './identity.ts';
import { inPool } from './in-order.ts';
import type { Desired, InventoryEntry, Live } from './port.ts';
import type { PhaseAnswer, ReconcileRequest, Reconciler } from './types.ts';

/** What is still to go. */
export interface Removal {
  readonly left: readonly { readonly entry: InventoryEntry; readonly live: Live }[];
}

/** `orphanAll`: whatever the entry says, the children live on. */
export type RemovalPolicy = 'onPrune' | 'onDelete' | 'orphanAll';

/** The recorded children that are no longer desired. An entry whose object is a desired child now is an old name of it, no other child. */
export function surplus(
  entries: readonly InventoryEntry[],
  wanted: ReadonlySet<string>,
  uids: ReadonlySet<string>,
): readonly InventoryEntry[] {
  return entries.filter((entry) => !wanted.has(childKey(entry)) && !(entry.uid !== '' && uids.has(entry.uid)));
}

/** Whether all children would go although the workload stays, and nobody said that it is meant. */
export function isPruneBlocked(
  annotations: Readonly<Record<string, string>>,
  desired: number,
  left: readonly Pick<InventoryEntry, 'state'>[],
): boolean {
  return desired === 0 && left.some((entry) => entry.state === 'applied') && annotations[allowEmptyAnnotation] !== 'true';
}

/** The keys of the desired children, and what is recorded beside them. */
function compare(
  request: ReconcileRequest,
  children: readonly Desired[],
): { readonly wanted: ReadonlySet<string>; readonly left: readonly InventoryEntry[] } {
  const wanted = new Set(children.map((child) => childKey(child.ref)));
  const uids = new Set(children.map((child) => request.seen.get(childKey(child.ref))?.live?.uid ?? '').filter((uid) => uid !== ''));
  return { wanted, left: surplus(request.status.children, wanted, uids) };
}

/**
 * Puts on record which children are not desired any more: they may stay for long, until all that is desired was applied, and
 * another workload that wants one of them need not wait for that.
 */
export function noteUnwanted(request: ReconcileRequest, children: readonly Desired[]): void {
  const { status, workload } = request;
  const { wanted, left } = compare(request, children);
  const unwanted = new Set(isPruneBlocked(workload.annotations, wanted.size, left) ? [] : left.map(childKey));
  for (const entry of status.children) {
    const { unwanted: before, ...rest } = entry;
    const now = unwanted.has(childKey(entry));
    if ((before === true) !== now) status.setChild(now ? { ...rest, unwanted: true } : rest);
  }
}

/**
 * Removes children that are recorded and no longer desired, in reverse order, wave by wave. Losing all of them at once is
 * held back until the workload says that it is meant.
 */
export async function pruneChildren(reconciler: Reconciler, request: ReconcileRequest, children: readonly Desired[]): Promise<PhaseAnswer> {
  const { status, workload } = request;
  const { wanted, left } = compare(request, children);
  const kept = new Set(left.map(childKey));
  for (const entry of status.children) if (!wanted.has(childKey(entry)) && !kept.has(childKey(entry))) status.dropChild(entry);
  if (left.length === 0) return true;
  if (isPruneBlocked(workload.annotations, wanted.size, left)) {
    const message = `no child is desired any more, but ${left.length} are recorded; if that is meant, set the annotation ${allowEmptyAnnotation}: "true"`;
    if (status.written?.conditions.some(({ reason }) => reason === 'PruneBlocked') !== true)
      registerAction(reconciler, request, 'PruneBlocked', undefined, message);
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

/**
 * Takes the highest order that is still there, removes it, and goes on to the next when it is gone. One that cannot be
 * removed does not keep the others of its order.
 */
export async function removeChildren(
  reconciler: Reconciler,
  request: ReconcileRequest,
  entries: readonly InventoryEntry[],
  policy: RemovalPolicy,
): Promise<Removal> {
  const orders = [...new Set(entries.map((entry) => entry.order))].sort((left, right) => right - left);
  for (const order of orders) {
    const wave = entries.filter((candidate) => candidate.order === order);
    const errors: Error[] = [];
    const left: { entry: InventoryEntry; live: Live }[] = [];
    await inPool(wave, async (entry) => {
      try {
        const live = await removeChild(reconciler, request, entry, policy);
        if (live !== undefined) left.push({ entry, live });
      } catch (error) {
        errors.push(asError(error));
      }
    });
    request.signal.throwIfAborted();
    if (errors.length > 0) throw joinErrors(errors);
    if (left.length > 0) return { left };
  }
  return { left: [] };
}

/** One step towards the end of a child; answers it while it is still there. */
async function removeChild(
  reconciler: Reconciler,
  request: ReconcileRequest,
  entry: InventoryEntry,
  policy: RemovalPolicy,
): Promise<Live | undefined> {
  const { status } = request;
  const live = await liveOf(reconciler, request, entry);
  if (live === undefined) {
    status.dropChild(entry);
    if (entry.state === 'deleting') tellDeleted(reconciler, request, entry);
    return undefined;
  }
  // The status can be edited by others, so the mark on the object itself decides too.
  if (!bearsMark(live, request.workload.key)) {
    status.dropChild(entry);
    // Another workload may have taken over what was to go.
    if (readParent(live) === undefined && (entry.uid === '' || entry.uid === live.uid)) {
      const note = `${entry.kind}/${entry.name} does not bear this workload's mark; it is left alone`;
      registerAction(reconciler, request, 'PruneBlocked', refOf(entry), note);
    }
    return undefined;
  }
  if (policy === 'orphanAll' || entry[policy] === 'orphan') {
    await reconciler.port.release(live.ref, live.uid, { ...request.call, owner: request.workload.key });
    status.dropChild(entry);
    return undefined;
  }
  return removeLive(reconciler, request, entry, live);
}

/**
 * The child as it is. That it is not there, or not ours, must not be the word of a cache that lags: the entry goes for good. A
 * kind that is not served any more has no objects.
 */
async function liveOf(
  { port, childKinds }: Reconciler,
  { call, workload }: ReconcileRequest,
  entry: InventoryEntry,
): Promise<Live | undefined> {
  try {
    const live = await port.get(refOf(entry), call);
    if (call.fresh === true || (live !== undefined && bearsMark(live, workload.key))) return live;
    return await port.get(refOf(entry), { ...call, fresh: true });
  } catch (error) {
    // A name that cannot be one (others may have edited the status) names nothing.
    if (isUnsupportedError(error) || isInvalidError(error)) return undefined;
    if (!isForbiddenError(error) || childKinds.some(({ group, kind }) => group === entry.group && kind === entry.kind)) throw error;
    throw terminalError(
      'UndeclaredChild',
      `${entry.kind}/${entry.name} was made by an earlier version of this workload, which may not touch it any more; name ${typeOfKind(entry)} in its retiredChildren`,
      error,
    );
  }
}

async function removeLive(reconciler: Reconciler, request: ReconcileRequest, entry: InventoryEntry, live: Live): Promise<Live | undefined> {
  const { port } = reconciler;
  const { status, call } = request;
  const options = { ...call, propagation: 'Foreground', owner: request.workload.key } as const;
  let outcome = await port.remove(live.ref, live.uid, options);
  let now: Live | undefined = live;
  if (outcome === 'terminating') {
    now = await port.get(live.ref, { ...call, fresh: true });
    // Marked, and nobody holds it: where removing takes two steps, this is the second.
    if (now?.uid === live.uid && now.deleting && now.finalizers.length === 0) outcome = await port.remove(live.ref, live.uid, options);
    else if (now === undefined || now.uid !== live.uid) outcome = 'gone';
  }
  if (outcome === 'gone') {
    status.dropChild(entry);
    tellDeleted(reconciler, request, entry);
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
      lastTransitionTime: entry.ready ? reconciler.timestamp() : entry.lastTransitionTime,
    });
  return now ?? live;
}

function tellDeleted(reconciler: Pick<Reconciler, 'emit'>, request: ReconcileRequest, entry: InventoryEntry): void {
  registerAction(reconciler, request, 'Deleted', refOf(entry), `deleted ${entry.kind}/${entry.name}`);
}
