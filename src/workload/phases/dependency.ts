import type { Live } from '../port.ts';
import { readiness } from '../readiness.ts';
import type { Dependency, HandlerFunc, ReconcileRequest, Reconciler } from '../types.ts';

/** Waits until everything that the workload depends on exists and is ready. */
export const dependencyPhase: HandlerFunc = async (reconciler, request) => {
  const missing: string[] = [];
  for (const dependency of reconciler.dependencies?.(request) ?? []) {
    const problem = await problemOf(reconciler, request, dependency);
    if (problem !== undefined) missing.push(problem);
  }
  if (missing.length === 0) return true;
  const message = missing.join('; ');
  // While updating, the children are still kept; only readiness says that something is missing.
  if (request.event === 'update') {
    request.dependencyMessage = message;
    return true;
  }
  return { proceed: false, reason: 'DependencyNotReady', message };
};

async function problemOf(reconciler: Reconciler, request: ReconcileRequest, dependency: Dependency): Promise<string | undefined> {
  const namespace = dependency.namespace ?? request.workload.key.namespace;
  const { group, kind, name } = dependency;
  const where = namespace === '*' ? 'any namespace' : namespace;
  const call = { signal: request.signal };
  if (name !== undefined && namespace !== '*') {
    const found = await reconciler.port.get({ group, kind, version: '', namespace, name }, call);
    return found === undefined ? `${kind} ${name} in ${where} does not exist` : notReady(found);
  }
  const listed = await reconciler.port.list(
    { group, kind },
    { ...call, ...(namespace !== '*' && { namespace }), ...(dependency.labels && { labels: dependency.labels }) },
  );
  const candidates = name === undefined ? listed : listed.filter((live) => live.ref.name === name);
  if (candidates.length === 0) return `no ${kind} in ${where} exists`;
  const problems = candidates.map(notReady).filter((problem) => problem !== undefined);
  if (dependency.require === 'any') return problems.length < candidates.length ? undefined : problems[0];
  return problems[0];
}

function notReady(live: Live): string | undefined {
  const { status, reason, message } = readiness(live);
  if (status === 'Current') return undefined;
  return `${live.ref.kind} ${live.ref.name} is not ready: ${reason}${message === '' ? '' : ` (${message})`}`;
}
