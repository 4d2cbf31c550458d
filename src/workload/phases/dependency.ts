import { isUnsupportedError } from '../../resource/index.ts';
import { findCondition } from '../conditions.ts';
import type { Condition, Live } from '../port.ts';
import type { ReadinessRules } from '../readiness.ts';
import { readiness } from '../readiness.ts';
import type { Dependency, HandlerFunc, ReconcileRequest, Reconciler } from '../types.ts';

/**
 * Waits until everything that the workload depends on exists and is ready. Once the workload was brought up, its children
 * are kept all the same, and only its readiness says that something is missing.
 */
export const dependencyPhase: HandlerFunc = async (reconciler, request) => {
  const problems: string[] = [];
  for (const dependency of reconciler.dependencies?.(request) ?? []) {
    const problem = await problemOf(reconciler, request, dependency);
    if (problem !== undefined) problems.push(problem);
  }
  if (problems.length === 0) return true;
  return { proceed: request.event === 'update', ready: false, reason: 'DependencyNotReady', message: problems.join('; ') };
};

async function problemOf(reconciler: Reconciler, request: ReconcileRequest, dependency: Dependency): Promise<string | undefined> {
  const namespace = dependency.namespace ?? request.workload.key.namespace;
  const { kind, name, require = 'all' } = dependency;
  const where = namespace === '*' ? 'any namespace' : `namespace ${namespace}`;
  let candidates: readonly Live[];
  try {
    candidates = await candidatesOf(reconciler, request, dependency, namespace);
  } catch (error) {
    if (isUnsupportedError(error)) return `kind ${kind} is not served yet`;
    throw error;
  }
  if (candidates.length === 0) return name === undefined ? `no ${kind} in ${where} exists` : `${kind} ${name} in ${where} does not exist`;
  const problems = candidates.map((live) => notReady(live, reconciler.readiness)).filter((problem) => problem !== undefined);
  if (require === 'any' && problems.length < candidates.length) return undefined;
  return problems.length === 0 ? undefined : problems.join('; ');
}

async function candidatesOf(
  { port }: Reconciler,
  { call }: ReconcileRequest,
  { group, kind, name, labels }: Dependency,
  namespace: string,
): Promise<readonly Live[]> {
  if (name !== undefined && namespace !== '*') {
    const found = await port.get({ group, kind, version: '', namespace, name }, call);
    return found === undefined ? [] : [found];
  }
  const listed = await port.list({ group, kind }, { ...call, ...(namespace !== '*' && { namespace }), ...(labels && { labels }) });
  return name === undefined ? listed : listed.filter((live) => live.ref.name === name);
}

/** Condition Ready at the present generation decides; where there is none, `created`, and where there is no status, the general rules. */
function notReady(live: Live, rules: ReadinessRules): string | undefined {
  const { kind, namespace, name } = live.ref;
  const what = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
  const { created, conditions } = (typeof live.status === 'object' && live.status !== null ? live.status : {}) as {
    readonly created?: unknown;
    readonly conditions?: readonly Condition[];
  };
  const ready = Array.isArray(conditions) ? findCondition(conditions, 'Ready') : undefined;
  if (!live.deleting && ready === undefined && typeof created === 'boolean') return created ? undefined : `${what} was not brought up yet`;
  const { status, reason, message } = readiness(live, rules);
  return status === 'Current' ? undefined : `${what} is not ready: ${reason}${message === '' ? '' : ` (${message})`}`;
}
