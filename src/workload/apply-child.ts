import {
  isAlreadyExistsError,
  isForbiddenError,
  isIncarnationConflictError,
  isNotFoundError,
  isPhaseConflictError,
  isUnsupportedError,
} from '../resource/index.ts';
import { desiredChanged, desiredDigest } from './children.ts';
import { findCondition } from './conditions.ts';
import { asError, immutableReason, terminalReason } from './errors.ts';
import { registerAction } from './events.ts';
import type { ParentMark } from './identity.ts';
import { bearsMark, childKey, childName, readParent, sameKind } from './identity.ts';
import { note } from './observe.ts';
import type { Condition, Desired, InventoryEntry, Live, PortCall, StorePort } from './port.ts';
import type { ChildObservation, ReconcileRequest, Reconciler } from './types.ts';

/** What became of one child in this reconcile. */
export type ChildOutcome =
  | { readonly kind: 'done'; readonly seen: ChildObservation }
  /** Not applied: something before it is not ready. */
  | { readonly kind: 'held'; readonly behind: readonly string[] }
  | { readonly kind: 'pending'; readonly message: string }
  | { readonly kind: 'error'; readonly error: Error };

/** What is to be done about one child, found out by reading only. */
export type Decision =
  /** It ended its work and was taken away (a Job with a time to live). */
  | { readonly kind: 'finished' }
  | { readonly kind: 'pending'; readonly live: Live | undefined; readonly message: string }
  | { readonly kind: 'refuse'; readonly live: Live; readonly problem: string }
  | { readonly kind: 'keep'; readonly live: Live }
  | {
      readonly kind: 'apply';
      readonly live: Live | undefined;
      /** It exists without our mark. */
      readonly adopt: boolean;
      /** It was never applied, or is to become another; else it only drifted. */
      readonly changed: boolean;
    };

/** Decides about a child. Reads only; `call` tells whether past the cache. */
export async function decide(reconciler: Reconciler, request: ReconcileRequest, child: Desired, call: PortCall): Promise<Decision> {
  const { port } = reconciler;
  const entry = request.status.child(child.ref);
  const digest = desiredDigest(child);
  const live = await port.get(child.ref, call);
  const changed = desiredChanged(entry, digest);
  if (live === undefined) {
    if (entry?.doneDigest !== undefined && !desiredChanged({ ...entry, digest: entry.doneDigest }, digest)) return { kind: 'finished' };
    const unfit = await namespaceProblem(reconciler, request, child, call);
    return unfit === undefined ? { kind: 'apply', live, adopt: false, changed } : { kind: 'pending', live, message: unfit };
  }
  if (live.deleting) {
    const behind = live.finalizers.length > 0 ? `; finalizers: ${live.finalizers.join(', ')}` : '';
    return { kind: 'pending', live, message: `is being deleted${behind}` };
  }
  const ours = bearsMark(live, request.workload.key);
  if (!ours) {
    const problem = await adoptionProblem(reconciler, request, child, live);
    return problem === undefined ? { kind: 'apply', live, adopt: true, changed } : { kind: 'refuse', live, problem };
  }
  const same = request.memory.isWritten(child, digest, live) || port.diff(child, live, entry) === 'same';
  return same ? { kind: 'keep', live } : { kind: 'apply', live, adopt: false, changed };
}

/** The parent's own namespace is not looked at; who may not look at namespaces goes on without. */
async function namespaceProblem(
  { port }: Reconciler,
  { workload }: ReconcileRequest,
  { ref }: Desired,
  call: PortCall,
): Promise<string | undefined> {
  if (!port.caps.namespaces || ref.namespace === '' || ref.namespace === workload.key.namespace) return undefined;
  try {
    const state = await port.namespaceState(ref.namespace, call);
    if (state === 'terminating') return `namespace ${ref.namespace} is being deleted`;
    return state === 'absent' ? `namespace ${ref.namespace} does not exist` : undefined;
  } catch (error) {
    if (isForbiddenError(error)) return undefined;
    throw error;
  }
}

/** What stands in the way of taking a live object without our mark as this child; `undefined`: nothing. */
async function adoptionProblem(reconciler: Reconciler, request: ReconcileRequest, child: Desired, live: Live): Promise<string | undefined> {
  const parent = readParent(live);
  const name = `${child.ref.kind} ${child.ref.namespace === '' ? '' : `${child.ref.namespace}/`}${child.ref.name}`;
  if (parent !== undefined && (await claimHolds(reconciler, request, parent, live)))
    return `${name} is a child of ${parent.kind} ${parent.namespace}/${parent.name}; remove it there, or choose another name here`;
  if (live.owner !== '' && live.owner !== reconciler.fieldManager && child.options?.adopt !== 'always')
    return `${name} is owned by ${live.owner}; it is not taken over`;
  if (child.options?.adopt === 'never') return `${name} exists already and was not made by this workload; delete it, or allow adoption`;
  return undefined;
}

/**
 * Whether another parent still wants the child that bears its mark. A parent records a child before it applies it, so one
 * that is gone, has no entry for it, or says in that entry that it is not wanted any more, has given it up. Only workloads of our own kind can be asked.
 */
async function claimHolds({ port, kind }: Reconciler, request: ReconcileRequest, parent: ParentMark, live: Live): Promise<boolean> {
  if (!sameKind(parent, kind)) return true;
  const other = await port.workload(
    { group: parent.group, kind: parent.kind, namespace: parent.namespace, name: parent.name },
    { ...request.call, fresh: true },
  );
  if (other === undefined) return false;
  if (other.status === undefined) return true;
  return other.status.children.some((entry) => entry.unwanted !== true && childKey(entry) === childKey(live.ref));
}

/** Brings one child to what is desired. `behind` tells what it would have to wait for; it is asked only when it matters. */
export async function applyChild(
  reconciler: Reconciler,
  request: ReconcileRequest,
  child: Desired,
  behind: () => readonly string[] = () => [],
): Promise<ChildOutcome> {
  try {
    return await attempt(reconciler, request, child, behind, request.call);
  } catch (error) {
    if (isUnsupportedError(error)) return pending(reconciler, request, child, undefined, `${kindName(child)} is not served yet`);
    if (!hasMoved(error)) throw error;
  }
  // What the decision was made on is not there any more, or something is there now: read it again, once.
  return attempt(reconciler, request, child, behind, { ...request.call, fresh: true });
}

function hasMoved(error: unknown): boolean {
  return isAlreadyExistsError(error) || isIncarnationConflictError(error) || isPhaseConflictError(error) || isNotFoundError(error);
}

async function attempt(
  reconciler: Reconciler,
  request: ReconcileRequest,
  child: Desired,
  behind: () => readonly string[],
  call: PortCall,
): Promise<ChildOutcome> {
  const { status, workload, memory } = request;
  const digest = desiredDigest(child);
  let decision = await decide(reconciler, request, child, call);
  if (decision.kind === 'pending' && (await isEnded(reconciler, request, decision.live)))
    decision = await decide(reconciler, request, child, { ...call, fresh: true });
  if (decision.kind === 'finished') {
    const seen: ChildObservation = { live: undefined, ready: true, failed: false, reason: 'Done', message: '' };
    request.seen.set(childKey(child.ref), seen);
    return { kind: 'done', seen };
  }
  const { live } = decision;
  switch (decision.kind) {
    case 'pending':
      return pending(reconciler, request, child, live, decision.message);
    case 'refuse':
      note(reconciler, request, child, undefined, { ready: false, reason: 'NotOurs', message: decision.problem });
      throw new Error(decision.problem);
    case 'keep':
      record(request, child, decision.live, digest);
      return { kind: 'done', seen: note(reconciler, request, child, decision.live) };
    default:
      break;
  }
  // A child that was never applied, or that is to become another, waits; one that only drifted is put right at once.
  const before = decision.changed ? behind() : [];
  if (before.length > 0) {
    note(reconciler, request, child, live, { ready: false, reason: 'Waiting', message: `waits for ${before.join(', ')}` });
    return { kind: 'held', behind: before };
  }
  const entry = status.child(child.ref);
  const known = entry !== undefined && entry.state !== 'intended' ? { entry } : {};
  let applied: Awaited<ReturnType<StorePort['apply']>>;
  try {
    applied = await reconciler.port.apply(child, { ...call, owner: workload, force: true, ...(live && { live }), ...known });
  } catch (error) {
    if (live === undefined || child.options?.onImmutable !== 'recreate' || terminalReason(error) !== immutableReason) throw error;
    await reconciler.port.remove(live.ref, live.uid, { ...call, propagation: 'Foreground' });
    return pending(reconciler, request, child, live, `is made anew: ${asError(error).message}`);
  }
  memory.wrote(child, digest, applied.live);
  record(request, child, applied.live, digest);
  if (applied.outcome !== 'unchanged') {
    const action = applied.outcome === 'created' ? 'Created' : decision.adopt ? 'Adopted' : 'Updated';
    registerAction(reconciler, request, action, child.ref, `${action.toLowerCase()} ${childName(child)}`);
  }
  return { kind: 'done', seen: note(reconciler, request, child, applied.live) };
}

/**
 * Whether a child of ours that is being deleted, and that nobody holds, is gone by now. Where there is no collector it goes only
 * when somebody takes the last step, and its parent is the one that wants another in its place.
 */
async function isEnded(reconciler: Reconciler, request: ReconcileRequest, live: Live | undefined): Promise<boolean> {
  const { port } = reconciler;
  if (live === undefined || !live.deleting || live.finalizers.length > 0 || port.caps.garbageCollector) return false;
  if (!bearsMark(live, request.workload.key)) return false;
  if ((await port.remove(live.ref, live.uid, { ...request.call, propagation: 'Foreground' })) !== 'gone') return false;
  registerAction(reconciler, request, 'Deleted', live.ref, `deleted ${live.ref.kind}/${live.ref.name}`);
  return true;
}

/** Notes in the inventory that a child is there as desired, and that it has done its work where it will go by itself. */
function record({ status }: ReconcileRequest, child: Desired, live: Live, digest: string): void {
  const entry = status.child(child.ref) as InventoryEntry;
  const doneDigest = isFinishedJob(live) ? digest : entry.doneDigest;
  const same = entry.state === 'applied' && entry.uid === live.uid && entry.digest === digest && entry.doneDigest === doneDigest;
  if (same && entry.version === child.ref.version) return;
  const done = doneDigest === undefined ? {} : { doneDigest };
  status.setChild({ ...entry, version: child.ref.version, state: 'applied', uid: live.uid, digest, ...done });
}

/** A Job with a time to live goes some time after it has completed; that must not bring it up again. */
function isFinishedJob({ ref, body, status }: Live): boolean {
  if (ref.group !== 'batch' || ref.kind !== 'Job') return false;
  const { spec } = body as { readonly spec?: { readonly ttlSecondsAfterFinished?: unknown } };
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
  return spec?.ttlSecondsAfterFinished !== undefined && findCondition(conditions, 'Complete')?.status === 'True';
}

function pending(reconciler: Reconciler, request: ReconcileRequest, child: Desired, live: Live | undefined, message: string): ChildOutcome {
  note(reconciler, request, child, live, { ready: false, reason: live?.deleting === true ? 'Terminating' : 'Pending', message });
  return { kind: 'pending', message };
}

function kindName({ ref }: Desired): string {
  return ref.group === '' ? ref.kind : `${ref.kind}.${ref.group}`;
}
