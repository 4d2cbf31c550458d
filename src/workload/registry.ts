import { invalid } from '../resource/index.ts';
import { checkedAnswer, isTime, timeExpected } from './answers.ts';
import { removeCondition } from './conditions.ts';
import { asError, classify, PendingError } from './errors.ts';
import { recordOutcomes, reservedConditions } from './outcomes.ts';
import {
  checkReadyPhase,
  completePhase,
  createResourcesPhase,
  deleteResourcesPhase,
  deletionCompletePhase,
  dependencyPhase,
} from './phases/index.ts';
import { ReadinessRules } from './readiness.ts';
import type { HandlerFunc, LifecycleEvent, PhaseAnswer, PhaseResult, ReconcileRequest, Reconciler, ResourceOption } from './types.ts';

const events: readonly LifecycleEvent[] = ['create', 'update', 'delete'];

/** One named step of a lifecycle event. */
export interface Phase {
  readonly name: string;
  readonly handler: HandlerFunc;
  readonly resourceOptions: readonly ResourceOption[];
  /** What to do when it does not let the next one go on: its custom result, else the pending back-off. */
  requeue(): PhaseResult | { readonly custom: PhaseResult };
  /** The result when nothing has to be looked at again. */
  defaultReconcileResult(): PhaseResult;
}

export type PhaseOption = (options: PhaseOptions) => void;

interface PhaseOptions {
  requeue: { readonly result: PhaseResult } | undefined;
  readonly resourceOptions: ResourceOption[];
}

/** What a phase that does not proceed asks for. `undefined`, or no time at all, waits for an event. */
export function withCustomRequeueResult(result: PhaseResult): PhaseOption {
  return (options) => {
    options.requeue = { result };
  };
}

/** Adds to the phase's resource options. */
export function withResourceOptions(...resourceOptions: readonly ResourceOption[]): PhaseOption {
  return (options) => void options.resourceOptions.push(...resourceOptions);
}

/** Not yet: why, and when to look again if the phase says so itself. */
export interface Pending {
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  readonly custom?: { readonly result: PhaseResult };
}

type Stopped =
  | { readonly kind: 'completed' }
  | ({ readonly kind: 'pending' } & Pending)
  | { readonly kind: 'failed' | 'terminal' | 'conflict' | 'transient'; readonly phase: string; readonly error: Error };

/** What became of one phase. `unready` went on, but the workload is not ready. */
export type Step = Stopped | ({ readonly kind: 'unready' } & Pending);

/** Why execution stopped, or that it did not. */
export type Outcome = Stopped;

export interface Execution {
  /** Every phase went on, and none found the workload unready. */
  readonly completed: boolean;
  readonly result: PhaseResult;
  readonly outcome: Outcome;
  /** One for each phase that was reached. */
  readonly steps: readonly Step[];
}

/** The ordered phases of the three lifecycle events. */
export class Registry {
  readonly #phases = new Map<LifecycleEvent, Phase[]>(events.map((event) => [event, []]));
  /** Rules of readiness for kinds of children. */
  readonly readiness = new ReadinessRules();

  /** Invalid for an unknown event, a name used twice for one event, or a reserved name. */
  register(name: string, handler: HandlerFunc, event: LifecycleEvent, ...options: readonly PhaseOption[]): this {
    const phases = this.#phases.get(event);
    if (phases === undefined)
      throw invalid([{ path: `phase ${name}`, message: `unknown lifecycle event ${String(event)}; expected create, update or delete` }]);
    if (!/^[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name))
      throw invalid([{ path: `phase ${name}`, message: 'a phase name is the type of a condition: letters, digits, - _ .' }]);
    if (reservedConditions.includes(name))
      throw invalid([{ path: `phase ${name}`, message: `${reservedConditions.join(', ')} are conditions of the engine` }]);
    if (phases.some((phase) => phase.name === name))
      throw invalid([{ path: `phase ${name}`, message: `is registered twice for ${event}` }]);
    const collected: PhaseOptions = { requeue: undefined, resourceOptions: [] };
    for (const option of options) option(collected);
    const { requeue } = collected;
    if (typeof requeue?.result === 'object' && !isTime(requeue.result.requeueAfterMs))
      throw invalid([
        { path: `phase ${name}`, message: `requeueAfterMs: ${timeExpected}, found ${String(requeue.result.requeueAfterMs)}` },
      ]);
    phases.push({
      name,
      handler,
      resourceOptions: Object.freeze([...collected.resourceOptions]),
      requeue: () => (requeue === undefined ? 'backoff' : { custom: requeue.result }),
      defaultReconcileResult: () => undefined,
    });
    return this;
  }

  phases(event: LifecycleEvent): readonly Phase[] {
    return this.#phases.get(event) ?? [];
  }

  /** Runs the phases of an event in order until one does not proceed; records each outcome as a condition. */
  async execute(reconciler: Reconciler, request: ReconcileRequest, event: LifecycleEvent): Promise<Execution> {
    const phases = this.phases(event);
    const steps: Step[] = [];
    for (const phase of phases) {
      const step = await runPhase(phase, reconciler, request);
      steps.push(step);
      if (step.kind !== 'completed' && step.kind !== 'unready') break;
    }
    const outcome = outcomeOf(steps);
    // Conflicts and the first transient errors say nothing about the workload; the engine decides when they do.
    if (outcome.kind !== 'conflict' && outcome.kind !== 'transient')
      recordOutcomes(
        request,
        reconciler.timestamp(),
        phases.map(({ name }) => name),
        steps,
        outcome,
      );
    else removeCondition(request.status.conditions, 'Paused');
    return { completed: outcome.kind === 'completed', result: resultOf(outcome, request), outcome, steps };
  }

  /** Runs the phases of the request's own event: what a controller calls. A workload that goes without our finalizer is left alone. */
  async handleExecution(reconciler: Reconciler, request: ReconcileRequest): Promise<PhaseResult> {
    const { deleting, finalizers } = request.workload;
    if (deleting && !finalizers.includes(reconciler.finalizer)) return undefined;
    return (await this.execute(reconciler, request, request.event)).result;
  }
}

export function createRegistry(): Registry {
  return new Registry();
}

/** Dependency, Create-Resources, Check-Ready, Complete for create and update; Delete-Resources, Deletion-Complete for delete. */
export function registerDefaultPhases(registry: Registry, options: { readonly createResources?: readonly PhaseOption[] } = {}): Registry {
  const soon = withCustomRequeueResult({ requeueAfterMs: 5_000 });
  for (const event of ['create', 'update'] as const) {
    registry.register('Dependency', dependencyPhase, event, soon);
    registry.register('Create-Resources', createResourcesPhase, event, ...(options.createResources ?? []));
    registry.register('Check-Ready', checkReadyPhase, event, soon);
    registry.register('Complete', completePhase, event);
  }
  registry.register('Delete-Resources', deleteResourcesPhase, 'delete');
  registry.register('Deletion-Complete', deletionCompletePhase, 'delete');
  return registry;
}

/** Whether a registry has delete phases of its author's own. */
export function hasOwnDeletePhases(registry: Registry): boolean {
  const builtIn: readonly HandlerFunc[] = [deleteResourcesPhase, deletionCompletePhase];
  return registry.phases('delete').some((phase) => !builtIn.includes(phase.handler));
}

async function runPhase(phase: Phase, reconciler: Reconciler, request: ReconcileRequest): Promise<Step> {
  const requeue = phase.requeue();
  const customOf = (own: number | undefined): Pick<Pending, 'custom'> => {
    if (own !== undefined) return { custom: { result: { requeueAfterMs: own } } };
    return typeof requeue === 'object' && 'custom' in requeue ? { custom: { result: requeue.custom } } : {};
  };
  let answer: Exclude<PhaseAnswer, boolean>;
  try {
    request.signal.throwIfAborted();
    const given = await phase.handler(reconciler, request, phase.resourceOptions);
    answer = checkedAnswer<Exclude<PhaseAnswer, boolean>>(`the phase ${phase.name}`, given, 'proceed');
  } catch (error) {
    if (error instanceof PendingError) {
      const { reason, message, requeueAfterMs } = error;
      return { kind: 'pending', phase: phase.name, reason, message, ...customOf(requeueAfterMs) };
    }
    return { kind: classify(error), phase: phase.name, error: asError(error) };
  }
  const { proceed, ready = true, reason = 'Pending', message = '', requeueAfterMs } = answer;
  if (proceed && ready) return { kind: 'completed' };
  const pending = { phase: phase.name, reason, message, ...customOf(requeueAfterMs) };
  return proceed ? { kind: 'unready', ...pending } : { kind: 'pending', ...pending };
}

/** What stopped, else what was found unready first. */
function outcomeOf(steps: readonly Step[]): Outcome {
  const last = steps.at(-1);
  if (last !== undefined && last.kind !== 'completed' && last.kind !== 'unready') return last;
  const unready = steps.find((step) => step.kind === 'unready');
  return unready === undefined ? { kind: 'completed' } : { ...unready, kind: 'pending' };
}

function resultOf(outcome: Outcome, request: ReconcileRequest): PhaseResult {
  switch (outcome.kind) {
    case 'completed':
      return request.recheckAfterMs === undefined ? undefined : { requeueAfterMs: request.recheckAfterMs };
    case 'terminal':
      return undefined;
    case 'pending':
      return outcome.custom === undefined ? 'backoff' : outcome.custom.result;
    default:
      return 'backoff';
  }
}
