import type { Readiness } from '../resource/index.ts';
import { thrownText } from '../resource/index.ts';
import { checkedReadiness } from './answers.ts';
import type { Condition, GroupKind, Live } from './port.ts';

/** A rule for one kind of child; `undefined`: the general rules decide. */
export type ReadinessRule = (live: Live) => Readiness | undefined;

/** Rules that an operator added, by group and kind. */
export class ReadinessRules {
  readonly #rules = new Map<string, ReadinessRule>();

  register(kind: GroupKind, rule: ReadinessRule): void {
    this.#rules.set(`${kind.group}/${kind.kind}`, rule);
  }

  find(kind: GroupKind): ReadinessRule | undefined {
    return this.#rules.get(`${kind.group}/${kind.kind}`);
  }
}

const inProgress = (reason: string, message: string): Readiness => ({ status: 'InProgress', reason, message });
const current: Readiness = Object.freeze({ status: 'Current', reason: 'Current', message: '' });

/** Whether a child is ready, and if not why. Never throws; an absent child is NotFound. */
export function readiness(live: Live | undefined, rules?: ReadinessRules): Readiness {
  if (live === undefined) return { status: 'NotFound', reason: 'NotFound', message: 'does not exist' };
  if (live.deleting) return { status: 'Terminating', reason: 'Terminating', message: 'is being deleted' };
  const status = (typeof live.status === 'object' && live.status !== null ? live.status : {}) as Record<string, unknown>;
  const observed = status.observedGeneration;
  if (live.generation !== undefined && typeof observed === 'number' && observed !== live.generation) {
    return inProgress('NotObserved', `generation ${live.generation} was not observed yet`);
  }
  // On the embedded store a status names the version that it was computed from; an older one tells nothing of this one.
  if (live.generation === undefined && typeof status.observedVersion === 'string' && status.observedVersion !== live.version) {
    return inProgress('NotObserved', 'its controller has not seen the present version yet');
  }
  const conditions = Array.isArray(status.conditions) ? (status.conditions as readonly Condition[]) : [];
  for (const condition of conditions) {
    if (condition.type === 'Reconciling' && condition.status === 'True') return inProgress(condition.reason, condition.message);
    if (condition.type === 'Stalled' && condition.status === 'True')
      return { status: 'Failed', reason: condition.reason, message: condition.message };
  }
  const ruled = byRule(live, rules) ?? live.ready;
  if (ruled !== undefined) return ruled;
  const ready = conditions.find((condition) => condition.type === 'Ready');
  if (ready === undefined) return current;
  if (live.generation !== undefined && ready.observedGeneration !== undefined && ready.observedGeneration < live.generation) {
    return inProgress('NotObserved', 'its Ready condition is of an older generation');
  }
  return ready.status === 'True' ? current : inProgress(ready.reason, ready.message);
}

/** A rule that throws, or answers what is none, fails the one child, with what it said. */
function byRule(live: Live, rules: ReadinessRules | undefined): Readiness | undefined {
  try {
    const found = rules?.find(live.ref)?.(live);
    return found === undefined ? undefined : checkedReadiness(found);
  } catch (error) {
    return { status: 'Failed', reason: 'RuleFailed', message: thrownText(error) };
  }
}

export function isReady(live: Live | undefined, rules?: ReadinessRules): boolean {
  return readiness(live, rules).status === 'Current';
}

export function areReady(lives: readonly (Live | undefined)[], rules?: ReadinessRules): boolean {
  return lives.every((live) => isReady(live, rules));
}

/** Adds a rule for one kind of child; it is asked after deletion, generation, Reconciling and Stalled. */
export function registerReadiness(registry: { readonly readiness: ReadinessRules }, kind: GroupKind, rule: ReadinessRule): void {
  registry.readiness.register(kind, rule);
}
