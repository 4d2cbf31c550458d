import { errorCode } from '../../resource/index.ts';
import { adoptionProblem, childConcurrency, desiredChanged, desiredDigest, ordersByDependency } from '../children.ts';
import { asError, ChildrenError, isOptimisticLockError, terminalError } from '../errors.ts';
import { bearsMark, childKey, childName } from '../identity.ts';
import { note } from '../observe.ts';
import type { Desired, InventoryEntry } from '../port.ts';
import { pruneChildren } from '../prune.ts';
import type { ChildObservation, HandlerFunc, ReconcileRequest, Reconciler } from '../types.ts';

/** What became of one child in this reconcile. */
type ChildOutcome =
  | { readonly kind: 'done'; readonly seen: ChildObservation }
  /** Not applied: something before it is not ready. */
  | { readonly kind: 'held'; readonly behind: readonly string[] }
  | { readonly kind: 'pending'; readonly message: string }
  | { readonly kind: 'error'; readonly error: Error };

/** Applies what differs from the desired children, in order, then prunes what is no longer desired. */
export const createResourcesPhase: HandlerFunc = async (reconciler, request, options) => {
  const children = await request.resources();
  await writeAhead(reconciler, request, children);
  const outcomes = await applyAll(reconciler, request, children, options.includes('withWait'));
  const errors = [...outcomes.values()].filter((outcome) => outcome.kind === 'error').map((outcome) => outcome.error);
  if (errors.length > 0) throw errors.length === 1 ? (errors[0] as Error) : new ChildrenError(errors);
  const failed = children.filter((child) => request.seen.get(childKey(child.ref))?.failed === true);
  if (failed.length > 0) {
    return { proceed: false, reason: 'ChildFailed', message: failed.map((child) => describe(child, request)).join('; ') };
  }
  const pending = [...outcomes]
    .filter(([, outcome]) => outcome.kind === 'pending')
    .map(([name, outcome]) => `${name}: ${(outcome as { message: string }).message}`);
  if (pending.length > 0) return { proceed: false, reason: 'Pending', message: pending.join('; ') };
  const held = [...outcomes].filter(([, outcome]) => outcome.kind === 'held');
  if (held.length > 0) {
    const behind = new Set(
      held
        .flatMap(([, outcome]) => (outcome as { behind: readonly string[] }).behind)
        .filter((name) => outcomes.get(name)?.kind !== 'held'),
    );
    const waiting = children.filter((child) => behind.has(childName(child))).map((child) => describe(child, request));
    return {
      proceed: false,
      reason: 'WaitingForChild',
      message: `${held.map(([name]) => name).join(', ')} wait for ${waiting.join('; ')}`,
    };
  }
  return pruneChildren(reconciler, request, children);
};

function describe(child: Desired, request: ReconcileRequest): string {
  const seen = request.seen.get(childKey(child.ref));
  return `${childName(child)}: ${seen?.reason ?? 'Unknown'}${seen === undefined || seen.message === '' ? '' : ` (${seen.message})`}`;
}

/** Records identities before the first apply, so that a crash leaks no child. */
async function writeAhead(reconciler: Reconciler, request: ReconcileRequest, children: readonly Desired[]): Promise<void> {
  const { status } = request;
  let added = false;
  for (const child of children) {
    const entry = status.child(child.ref);
    const order = child.options?.deletionOrder ?? 0;
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
  if (!added) return;
  const next = status.writeAhead();
  request.workload = await reconciler.port.writeStatus(request.workload, next, { signal: request.signal });
  status.markWritten(next);
}

/** Handles every child: one after another in the given order, or as `dependsOn` allows, several at once. */
async function applyAll(
  reconciler: Reconciler,
  request: ReconcileRequest,
  children: readonly Desired[],
  wait: boolean,
): Promise<Map<string, ChildOutcome>> {
  const outcomes = new Map<string, ChildOutcome>();
  const ready = (name: string): boolean => {
    const outcome = outcomes.get(name);
    return outcome?.kind === 'done' && outcome.seen.ready;
  };
  const handle = async (child: Desired, predecessors: readonly string[]): Promise<void> => {
    const behind = wait ? predecessors.filter((name) => !ready(name)) : [];
    try {
      outcomes.set(childName(child), await handleChild(reconciler, request, child, behind));
    } catch (error) {
      request.signal.throwIfAborted();
      outcomes.set(childName(child), { kind: 'error', error: asError(error) });
    }
  };
  if (!ordersByDependency(children)) {
    const before: string[] = [];
    for (const child of children) {
      await handle(child, before);
      before.push(childName(child));
    }
    return outcomes;
  }
  const waiting = new Set(children);
  while (waiting.size > 0) {
    // What a child depends on has been handled, in whatever way, before the child is.
    const wave = [...waiting].filter((child) => (child.dependsOn ?? []).every((name) => outcomes.has(name))).slice(0, childConcurrency);
    for (const child of wave) waiting.delete(child);
    await Promise.all(wave.map((child) => handle(child, child.dependsOn ?? [])));
  }
  return outcomes;
}

async function handleChild(
  reconciler: Reconciler,
  request: ReconcileRequest,
  child: Desired,
  behind: readonly string[],
): Promise<ChildOutcome> {
  const { port } = reconciler;
  const call = { signal: request.signal };
  let entry = request.status.child(child.ref) as InventoryEntry;
  const digest = desiredDigest(child);
  const live = await port.get(child.ref, call);
  if (live === undefined && entry.doneDigest !== undefined && !desiredChanged({ ...entry, digest: entry.doneDigest }, digest)) {
    const seen: ChildObservation = { live, ready: true, failed: false, reason: 'Done', message: '' };
    request.seen.set(childKey(child.ref), seen);
    return { kind: 'done', seen };
  }
  if (live?.deleting === true) {
    note(reconciler, request, child, live);
    return {
      kind: 'pending',
      message: `is being deleted${live.finalizers.length > 0 ? `; finalizers: ${live.finalizers.join(', ')}` : ''}`,
    };
  }
  if (live !== undefined) {
    const problem = adoptionProblem(request.workload, child, live, reconciler.fieldManager);
    if (problem !== undefined) throw terminalError('ChildNotOurs', problem);
    if (!desiredChanged(entry, digest) && bearsMark(live, request.workload.key) && port.diff(child, live, entry) === 'same') {
      if (entry.state !== 'applied' || entry.uid !== live.uid || entry.digest !== digest)
        request.status.setChild({ ...entry, state: 'applied', uid: live.uid, digest });
      return { kind: 'done', seen: note(reconciler, request, child, live) };
    }
  }
  // A child that was never applied, or that is to become another, waits; one that only drifted is put right at once.
  if (behind.length > 0 && (entry.state === 'intended' || desiredChanged(entry, digest))) {
    note(reconciler, request, child, live);
    return { kind: 'held', behind };
  }
  const adopted = live !== undefined && !bearsMark(live, request.workload.key);
  const applied = await port.apply(child, {
    ...call,
    owner: request.workload,
    force: true,
    ...(live && { live }),
    ...(entry.state !== 'intended' && { entry }),
  });
  entry = request.status.child(child.ref) as InventoryEntry;
  request.status.setChild({ ...entry, state: 'applied', uid: applied.live.uid, digest });
  if (applied.outcome !== 'unchanged') {
    const reason = applied.outcome === 'created' ? 'Created' : adopted ? 'Adopted' : 'Updated';
    reconciler.emit({
      regarding: request.workload.key,
      related: child.ref,
      type: 'Normal',
      reason,
      note: `${reason.toLowerCase()} ${childName(child)}`,
    });
  }
  return { kind: 'done', seen: note(reconciler, request, child, applied.live) };
}

/**
 * Creates a child that is missing and updates one that differs: for phases of one's own. Answers what was seen of it.
 */
export async function createOrUpdate(reconciler: Reconciler, request: ReconcileRequest, child: Desired): Promise<ChildObservation> {
  await writeAhead(reconciler, request, [child]);
  const outcome = await handleChild(reconciler, request, child, []);
  if (outcome.kind === 'done') return outcome.seen;
  return (
    request.seen.get(childKey(child.ref)) ?? {
      live: undefined,
      ready: false,
      failed: false,
      reason: 'Pending',
      message: outcome.kind === 'pending' ? outcome.message : '',
    }
  );
}

/** The condition, the decision and the error that an attempt at a child stands for. */
export function handleResourcePhaseExit(
  created: boolean,
  error?: unknown,
): {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly proceed: boolean;
  readonly error?: Error;
} {
  if (error === undefined || error === null)
    return created
      ? { status: 'True', reason: 'Complete', message: '', proceed: true }
      : { status: 'False', reason: 'Pending', message: '', proceed: false };
  const failure = asError(error);
  if (isOptimisticLockError(error))
    return { status: 'False', reason: 'Conflict', message: failure.message, proceed: false, error: failure };
  return {
    status: 'False',
    reason: errorCode(error) === 'Invalid' ? 'Invalid' : 'Failed',
    message: failure.message,
    proceed: false,
    error: failure,
  };
}
