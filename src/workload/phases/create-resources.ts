import { errorCode } from '../../resource/index.ts';
import type { ChildOutcome } from '../apply-child.ts';
import { applyChild } from '../apply-child.ts';
import { asError, classify, isOptimisticLockError, joinErrors, terminalError } from '../errors.ts';
import { childKey, childName } from '../identity.ts';
import { inOrder } from '../in-order.ts';
import { updateResourceConditions } from '../observe.ts';
import type { Desired } from '../port.ts';
import { noteUnwanted, pruneChildren } from '../prune.ts';
import { recoverInventory } from '../recover.ts';
import type { ChildObservation, HandlerFunc, PhaseAnswer, ReconcileRequest, Reconciler } from '../types.ts';
import { writeAhead } from '../write-ahead.ts';

/** Applies what differs from the desired children, in order, then prunes what is no longer desired. */
export const createResourcesPhase: HandlerFunc = async (reconciler, request, options) => {
  const children = await request.resources();
  await recoverInventory(reconciler, request);
  await writeAhead(reconciler, request, children);
  const outcomes = await applyAll(reconciler, request, children, options.includes('withWait'));
  noteUnwanted(request, children);
  const errors = [...outcomes.values()].filter((outcome) => outcome.kind === 'error').map((outcome) => outcome.error);
  if (errors.length > 0) throw joinErrors(errors);
  const waiting = notApplied(request, children, outcomes);
  // What is no longer wanted goes only when all that is wanted was applied.
  const answer = waiting ?? (await pruneChildren(reconciler, request, children));
  const failed = children.filter((child) => request.seen.get(childKey(child.ref))?.failed === true);
  if (failed.length === 0) return answer;
  return { proceed: false, reason: 'ChildFailed', message: failed.map((child) => describe(child, request)).join('; ') };
};

/** Why not all children were applied; `undefined`: they were. */
function notApplied(
  request: ReconcileRequest,
  children: readonly Desired[],
  outcomes: ReadonlyMap<string, ChildOutcome>,
): PhaseAnswer | undefined {
  const pending: string[] = [];
  const held: string[] = [];
  const behind = new Set<string>();
  for (const [name, outcome] of outcomes) {
    if (outcome.kind === 'pending') pending.push(`${name}: ${outcome.message}`);
    if (outcome.kind !== 'held') continue;
    held.push(name);
    for (const before of outcome.behind) if (outcomes.get(before)?.kind !== 'held') behind.add(before);
  }
  if (pending.length > 0) return { proceed: false, reason: 'Pending', message: pending.join('; ') };
  if (held.length === 0) return undefined;
  const reasons = children.filter((child) => behind.has(childName(child))).map((child) => describe(child, request));
  return { proceed: false, reason: 'WaitingForChild', message: `${held.join(', ')} wait for ${reasons.join('; ')}` };
}

function describe(child: Desired, request: ReconcileRequest): string {
  const seen = request.seen.get(childKey(child.ref));
  return `${childName(child)}: ${seen?.reason ?? 'Unknown'}${seen === undefined || seen.message === '' ? '' : ` (${seen.message})`}`;
}

/** Handles every child, whatever becomes of the others. */
async function applyAll(
  reconciler: Reconciler,
  request: ReconcileRequest,
  children: readonly Desired[],
  wait: boolean,
): Promise<ReadonlyMap<string, ChildOutcome>> {
  const outcomes = new Map<string, ChildOutcome>();
  const holdsBack = (name: string): boolean => {
    const outcome = outcomes.get(name);
    return outcome?.kind !== 'done' || !outcome.seen.ready;
  };
  await inOrder(children, async (child, predecessors) => {
    const behind = (): readonly string[] => (wait ? predecessors.filter(holdsBack) : []);
    try {
      outcomes.set(childName(child), await applyChild(reconciler, request, child, behind));
    } catch (error) {
      request.signal.throwIfAborted();
      outcomes.set(childName(child), { kind: 'error', error: asError(error) });
      noteError(reconciler, request, child, asError(error));
    }
  });
  return outcomes;
}

/** A conflict or a passing fault says nothing about the child. */
function noteError(reconciler: Reconciler, request: ReconcileRequest, child: Desired, error: Error): void {
  const found = classify(error);
  if (found === 'conflict' || found === 'transient') return;
  updateResourceConditions(reconciler, request, child, { ready: false, reason: errorCode(error) ?? 'Failed', message: error.message });
}

/**
 * Creates a child that is missing and updates one that differs, ahead of createResourcesPhase: for phases of one's own.
 * Answers what was seen of it. It must be one of the children that `getResources` answers: any other would be pruned again.
 */
export async function createOrUpdate(
  reconciler: Reconciler,
  request: ReconcileRequest,
  child: Pick<Desired, 'ref' | 'name'>,
): Promise<ChildObservation> {
  const key = childKey(child.ref);
  const desired = (await request.resources()).find(({ ref }) => childKey(ref) === key);
  if (desired === undefined)
    throw terminalError(
      'NotDesired',
      `${childName(child)} is not among the children that getResources answers, so it would be pruned; add it there`,
    );
  await recoverInventory(reconciler, request);
  await writeAhead(reconciler, request, [desired]);
  await applyChild(reconciler, request, desired);
  return request.seen.get(key) as ChildObservation;
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
  const reason = isOptimisticLockError(error) ? 'Conflict' : errorCode(error) === 'Invalid' ? 'Invalid' : 'Failed';
  return { status: 'False', reason, message: failure.message, proceed: false, error: failure };
}
