import { invalid } from '../resource/index.ts';
import { removeCondition, setCondition } from './conditions.ts';
import { asError, isOptimisticLockError, isTerminalError, isTransientError } from './errors.ts';
import {
  checkReadyPhase,
  completePhase,
  createResourcesPhase,
  deleteResourcesPhase,
  deletionCompletePhase,
  dependencyPhase,
} from './phases/index.ts';
import type { HandlerFunc, LifecycleEvent, PhaseAnswer, PhaseResult, ReconcileRequest, Reconciler, ResourceOption } from './types.ts';

const events: readonly LifecycleEvent[] = ['create', 'update', 'delete'];
/** Conditions of the engine itself. */
export const reservedConditions: readonly string[] = ['Ready', 'Reconciling', 'Stalled', 'Paused'];

/** One named step of a lifecycle event. */
export interface Phase {
  readonly name: string;
  readonly handler: HandlerFunc;
  readonly resourceOptions: readonly ResourceOption[];
  /** What to do when it does not let the next one go on: its custom result, or `undefined` for the pending back-off. */
  requeue(): PhaseResult | { readonly custom: PhaseResult };
  /** The result when nothing has to be looked at again. */
  defaultReconcileResult(): PhaseResult;
}

export type PhaseOption = (options: PhaseOptions) => void;

interface PhaseOptions {
  requeue: { readonly result: PhaseResult } | undefined;
  readonly resourceOptions: ResourceOption[];
}

/** What a phase that does not proceed asks for. `undefined` waits for an event. */
export function withCustomRequeueResult(result: PhaseResult): PhaseOption {
  return (options) => {
    options.requeue = { result };
  };
}

/** Adds to the phase's resource options. */
export function withResourceOptions(...resourceOptions: readonly ResourceOption[]): PhaseOption {
  return (options) => void options.resourceOptions.push(...resourceOptions);
}

/** Why execution stopped, or that it did not. */
export type Outcome =
  | { readonly kind: 'completed' }
  | {
      readonly kind: 'pending';
      readonly phase: string;
      readonly reason: string;
      readonly message: string;
      readonly custom?: { readonly result: PhaseResult };
    }
  | { readonly kind: 'failed' | 'terminal' | 'conflict' | 'transient'; readonly phase: string; readonly error: Error };

export interface Execution {
  readonly completed: boolean;
  readonly result: PhaseResult;
  readonly outcome: Outcome;
}

/** The ordered phases of the three lifecycle events. */
export class Registry {
  readonly #phases = new Map<LifecycleEvent, Phase[]>(events.map((event) => [event, []]));

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
    phases.push({
      name,
      handler,
      resourceOptions: Object.freeze([...collected.resourceOptions]),
      requeue: () => (requeue === undefined ? undefined : { custom: requeue.result }),
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
    let outcome: Outcome = { kind: 'completed' };
    let reached = 0;
    for (const phase of phases) {
      outcome = await runPhase(phase, reconciler, request);
      reached++;
      if (outcome.kind !== 'completed') break;
    }
    recordOutcomes(request, reconciler.timestamp(), phases, reached, outcome);
    return { completed: outcome.kind === 'completed', result: resultOf(outcome, request), outcome };
  }

  /** Runs the phases of the request's own event: what a controller calls. */
  async handleExecution(reconciler: Reconciler, request: ReconcileRequest): Promise<PhaseResult> {
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

async function runPhase(phase: Phase, reconciler: Reconciler, request: ReconcileRequest): Promise<Outcome> {
  let answer: PhaseAnswer;
  try {
    request.signal.throwIfAborted();
    answer = await phase.handler(reconciler, request, phase.resourceOptions);
  } catch (error) {
    const failure = asError(error);
    if (isTerminalError(error)) return { kind: 'terminal', phase: phase.name, error: failure };
    if (isOptimisticLockError(error)) return { kind: 'conflict', phase: phase.name, error: failure };
    return { kind: isTransientError(error) ? 'transient' : 'failed', phase: phase.name, error: failure };
  }
  const { proceed, reason, message, requeueAfterMs } = typeof answer === 'boolean' ? { proceed: answer } : answer;
  if (proceed) return { kind: 'completed' };
  const own = requeueAfterMs === undefined ? undefined : { result: { requeueAfterMs } };
  const requeue = phase.requeue();
  const custom = own ?? (typeof requeue === 'object' && 'custom' in requeue ? { result: requeue.custom } : undefined);
  return { kind: 'pending', phase: phase.name, reason: reason ?? 'Pending', message: message ?? '', ...(custom && { custom }) };
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

/** Writes each phase's outcome as a condition, and Ready, Reconciling and Stalled from all of them. */
function recordOutcomes(request: ReconcileRequest, timestamp: string, phases: readonly Phase[], reached: number, outcome: Outcome): void {
  const { status } = request;
  // Conflicts and the first transient errors say nothing about the workload; the engine decides when they do.
  if (outcome.kind === 'conflict' || outcome.kind === 'transient') return;
  const { conditions } = status;
  const set = (type: string, value: 'True' | 'False' | 'Unknown', reason: string, message: string): void =>
    setCondition(conditions, { type, status: value, reason, message, observedGeneration: request.workload.generation }, timestamp);
  for (const condition of [...conditions]) {
    if (!reservedConditions.includes(condition.type) && !phases.some((phase) => phase.name === condition.type))
      removeCondition(conditions, condition.type);
  }
  phases.forEach((phase, index) => {
    if (index >= reached) set(phase.name, 'Unknown', 'NotReached', '');
    else if (index < reached - 1 || outcome.kind === 'completed') set(phase.name, 'True', 'Complete', '');
    else if (outcome.kind === 'pending') set(phase.name, 'False', outcome.reason, outcome.message);
    else set(phase.name, 'False', 'Failed', outcome.error.message);
  });
  removeCondition(conditions, 'Paused');
  recordReady(conditions, set, outcome);
}

function recordReady(
  conditions: Parameters<typeof removeCondition>[0],
  set: (type: string, value: 'True' | 'False', reason: string, message: string) => void,
  outcome: Outcome,
): void {
  if (outcome.kind === 'completed') {
    set('Ready', 'True', 'Ready', '');
    removeCondition(conditions, 'Reconciling');
    removeCondition(conditions, 'Stalled');
  } else if (outcome.kind === 'terminal') {
    const reason = isTerminalError(outcome.error) && 'reason' in outcome.error ? String(outcome.error.reason) : 'Failed';
    set('Ready', 'False', reason, outcome.error.message);
    set('Stalled', 'True', reason, outcome.error.message);
    removeCondition(conditions, 'Reconciling');
  } else {
    const { reason, message } = outcome.kind === 'pending' ? outcome : { reason: 'Failed', message: outcome.error.message };
    set('Ready', 'False', reason, message);
    set('Reconciling', 'True', reason, message);
    removeCondition(conditions, 'Stalled');
  }
}

/** Records an error that had been left out of the conditions, once it has come often enough in a row. */
export function recordFailure(request: ReconcileRequest, timestamp: string, phases: readonly Phase[], phase: string, error: Error): void {
  const reached = phases.findIndex((candidate) => candidate.name === phase) + 1;
  recordOutcomes(request, timestamp, phases, reached, { kind: 'failed', phase, error });
}
