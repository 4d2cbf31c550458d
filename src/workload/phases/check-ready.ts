import { childKey, childName } from '../identity.ts';
import { observe } from '../observe.ts';
import type { HandlerFunc } from '../types.ts';

/** All children are ready, and the workload's own check says so. A missing child is not ready; it is no error. */
export const checkReadyPhase: HandlerFunc = async (reconciler, request) => {
  const waiting: string[] = [];
  for (const child of await request.resources()) {
    const seen = request.seen.get(childKey(child.ref)) ?? (await observe(reconciler, request, child));
    if (!seen.ready) waiting.push(`${childName(child)}: ${seen.reason}${seen.message === '' ? '' : ` (${seen.message})`}`);
  }
  if (waiting.length > 0) return { proceed: false, reason: 'ChildrenNotReady', message: waiting.join('; ') };
  if (request.dependencyMessage !== undefined) return { proceed: false, reason: 'DependencyNotReady', message: request.dependencyMessage };
  const answer = await reconciler.limited('checkReady', () => reconciler.checkReady(request));
  const { ready, reason, message } = typeof answer === 'boolean' ? { ready: answer } : answer;
  return ready ? true : { proceed: false, reason: reason ?? 'NotReady', message: message ?? 'the workload says that it is not ready' };
};
