import { checkedAnswer } from '../answers.ts';
import { childKey, childName } from '../identity.ts';
import { observe } from '../observe.ts';
import type { ChildObservation, HandlerFunc, ReadyAnswer } from '../types.ts';

/** All children are ready, and the workload's own check says so. A missing child is not ready; it is no error. */
export const checkReadyPhase: HandlerFunc = async (reconciler, request) => {
  const waiting: string[] = [];
  const failed: string[] = [];
  for (const child of await request.resources()) {
    const seen = request.seen.get(childKey(child.ref)) ?? (await observe(reconciler, request, child));
    if (seen.failed) failed.push(tell(childName(child), seen));
    else if (!seen.ready) waiting.push(tell(childName(child), seen));
  }
  if (failed.length > 0) return { proceed: false, reason: 'ChildFailed', message: [...failed, ...waiting].join('; ') };
  if (waiting.length > 0) return { proceed: false, reason: 'ChildrenNotReady', message: waiting.join('; ') };
  const answer = await reconciler.limited('checkReady', () => reconciler.checkReady(request));
  const { ready, reason, message } = checkedAnswer<ReadyAnswer>('checkReady', answer, 'ready');
  return ready ? true : { proceed: false, reason: reason ?? 'NotReady', message: message ?? 'the workload says that it is not ready' };
};

function tell(name: string, { reason, message }: ChildObservation): string {
  return `${name}: ${reason}${message === '' ? '' : ` (${message})`}`;
}
