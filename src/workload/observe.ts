import { boundedText } from '../resource/index.ts';
import { messageLimit, plainText, reasonLimit } from './conditions.ts';
import { childKey } from './identity.ts';
import type { Desired, Live } from './port.ts';
import { readiness } from './readiness.ts';
import type { ChildObservation, ReconcileRequest, Reconciler } from './types.ts';

/** Looks at a child, notes what was seen, and brings its inventory entry up to date. */
export async function observe(reconciler: Reconciler, request: ReconcileRequest, child: Desired): Promise<ChildObservation> {
  return note(reconciler, request, child, await reconciler.port.get(child.ref, request.call));
}

/** Notes what was seen of a child, or what there is to say about it instead. */
export function note(
  reconciler: Reconciler,
  request: ReconcileRequest,
  child: Desired,
  live: Live | undefined,
  instead?: Pick<ChildObservation, 'ready' | 'reason' | 'message'>,
): ChildObservation {
  const { status, reason, message, recheckAfterMs } = readiness(live, reconciler.readiness);
  const observation = { live, ready: status === 'Current', failed: status === 'Failed', reason, message, ...instead };
  request.seen.set(childKey(child.ref), observation);
  if (recheckAfterMs !== undefined) recheck(request, recheckAfterMs);
  updateResourceConditions(reconciler, request, child, observation);
  return observation;
}

/** Asks for another look after a while, at the latest. */
export function recheck(request: ReconcileRequest, afterMs: number): void {
  request.recheckAfterMs = Math.min(request.recheckAfterMs ?? Number.POSITIVE_INFINITY, afterMs);
}

/**
 * Notes what became of a child in the inventory of a request's status, which is written once, at the end: for phases of
 * one's own.
 */
export function updateResourceConditions(
  reconciler: Pick<Reconciler, 'timestamp'>,
  request: Pick<ReconcileRequest, 'status'>,
  child: Pick<Desired, 'ref'>,
  observed: Pick<ChildObservation, 'ready' | 'reason' | 'message'>,
): void {
  const entry = request.status.child(child.ref);
  if (entry === undefined) return;
  const { ready } = observed;
  // An error of anywhere may stand in there; what cannot be stored would keep all of the status from being written.
  const reason = boundedText(plainText(observed.reason), reasonLimit);
  const message = boundedText(plainText(observed.message), messageLimit);
  if (entry.ready === ready && entry.reason === reason && entry.message === message) return;
  const lastTransitionTime = entry.ready === ready ? entry.lastTransitionTime : reconciler.timestamp();
  request.status.setChild({ ...entry, ready, reason, message, lastTransitionTime });
}
