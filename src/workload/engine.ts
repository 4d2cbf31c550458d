import type { Environment, Logger } from '../environment/index.ts';
import { isConflictError, isNotFoundError, SteadystateError } from '../resource/index.ts';
import { prepareChildren } from './children.ts';
import { setCondition } from './conditions.ts';
import type { WorkloadDefinition, WorkloadRequest } from './define-workload.ts';
import { kindOfType } from './define-workload.ts';
import { pausedAnnotation, workloadKeyText } from './identity.ts';
import { registerDeleteHooks } from './phases/index.ts';
import type { Desired, StorePort, WorkloadEvent, WorkloadKey, WorkloadStatus, WorkloadView } from './port.ts';
import type { Execution } from './registry.ts';
import { recordFailure } from './registry.ts';
import { StatusDraft, sameButMessages, sameStatus } from './status-draft.ts';
import type { LifecycleEvent, PhaseResult, ReconcileRequest, Reconciler } from './types.ts';

/** A pending phase is looked at again after this long at first, then half as long again each time. */
const pendingDelayMs = 1_000;
const maxPendingDelayMs = 30_000;
/** A change of message text alone is written at most this often. */
const messageIntervalMs = 60_000;
/** Conflicts and transient errors are told from this many in a row. */
const conflictsTold = 5;
const transientTold = 3;
const statusTries = 3;

/** What a reconcile asks its controller for. */
export type EngineResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'requeue'; readonly afterMs: number }
  /** A failure: the key's own back-off. Quiet ones are not logged. */
  | { readonly kind: 'failure'; readonly error: Error; readonly quiet: boolean };

/** What is remembered of a workload between reconciles; nothing depends on it for being right. */
interface Memory {
  readonly uid: string;
  pending: { readonly phase: string; readonly generation: number; count: number } | undefined;
  conflicts: number;
  transient: number;
  messageWrittenAt: number | undefined;
  ready: boolean | undefined;
}

/** Takes workloads of one kind through their phases. One instance per controller; ports come with each reconcile. */
export class WorkloadEngine<Spec, Input> {
  readonly definition: WorkloadDefinition<Spec, Input>;
  readonly #environment: Environment;
  readonly #memory = new Map<string, Memory>();

  constructor(definition: WorkloadDefinition<Spec, Input>, environment: Environment) {
    this.definition = definition;
    this.#environment = environment;
  }

  get finalizer(): string {
    return `${this.definition.definition.type}/finalizer`;
  }

  /** One reconcile of one workload. */
  async reconcile(key: WorkloadKey, port: StorePort, log: Logger, signal: AbortSignal): Promise<EngineResult> {
    const view = await port.workload(key, { signal });
    if (view === undefined) {
      this.#memory.delete(workloadKeyText(key));
      return { kind: 'none' };
    }
    if (view.deleting && !view.finalizers.includes(this.finalizer)) return { kind: 'none' };
    const memory = this.#recall(view);
    const request = this.#request(view, log, signal);
    const reconciler = this.reconciler(port, request, log);
    if (!view.deleting && view.annotations[pausedAnnotation] === 'true') return this.#pause(reconciler, request, memory);
    if (!view.deleting) await registerDeleteHooks(reconciler, request);
    const execution = await this.definition.phases.execute(reconciler, request, request.event);
    signal.throwIfAborted();
    const result = this.#settle(reconciler, request, execution, memory);
    if (request.event === 'delete' && execution.completed) {
      await this.#finish(reconciler, request);
      return { kind: 'none' };
    }
    const written = await this.#writeStatus(reconciler, request, memory, result);
    this.#tellReady(reconciler, request, memory);
    return written;
  }

  /** What the desired children of a workload are, prepared; for a plan. */
  async children(view: WorkloadView, log: Logger, signal: AbortSignal): Promise<readonly Desired[]> {
    return this.#request(view, log, signal).resources();
  }

  /** The reconciler of one request. */
  reconciler(port: StorePort, request: ReconcileRequest, log: Logger): Reconciler {
    const { definition } = this;
    const own = this.#own(request);
    const { mutate, checkReady, dependencies } = definition;
    const reconciler: Reconciler = {
      port,
      log,
      emit: (event) => emitSafely(port, log, event),
      fieldManager: port.owner ?? `${definition.kind.kind}-reconciler`,
      finalizer: this.finalizer,
      childKinds: definition.children.map((child) => kindOfType(child.type)),
      timestamp: () => this.#environment.timestamp(),
      limited: (what, work) => this.#limited(what, work),
      getResources: () => definition.getResources(own),
      checkReady: () => checkReady?.(own) ?? true,
      ...(mutate && { mutate: (child: Desired) => mutate(child, own) }),
      ...(dependencies && { dependencies: () => dependencies(own) }),
    };
    return reconciler;
  }

  #own(request: ReconcileRequest): WorkloadRequest<Spec> {
    const { workload, signal, log } = request;
    return {
      signal,
      namespace: workload.key.namespace,
      name: workload.key.name,
      uid: workload.uid,
      spec: workload.spec as Spec,
      labels: workload.labels,
      annotations: workload.annotations,
      extra: request.status.extra,
      log,
      request,
    };
  }

  #request(view: WorkloadView, log: Logger, signal: AbortSignal): ReconcileRequest {
    const status = new StatusDraft(view.status, view.generation, view.version);
    const event: LifecycleEvent = view.deleting ? 'delete' : status.created ? 'update' : 'create';
    let children: Promise<readonly Desired[]> | undefined;
    const request: ReconcileRequest = {
      signal,
      workload: view,
      event,
      log,
      status,
      seen: new Map(),
      recheckAfterMs: this.definition.resyncMs,
      resources: () => {
        children ??= this.#compute(request);
        return children;
      },
    };
    return request;
  }

  async #compute(request: ReconcileRequest): Promise<readonly Desired[]> {
    const own = this.#own(request);
    const { mutate } = this.definition;
    const computed = await this.#limited('getResources', () => this.definition.getResources(own));
    const children: Desired[] = [];
    for (const child of computed) {
      if (mutate === undefined) children.push(child);
      else children.push(...(await this.#limited('mutate', () => mutate(child, own))));
    }
    return prepareChildren(request.workload, children);
  }

  async #limited<Value>(what: string, work: () => Promise<Value> | Value): Promise<Value> {
    const { deadlineMs } = this.definition;
    const started = work();
    if (!(started instanceof Promise)) return started;
    let timer: Disposable | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.#environment.after(deadlineMs, () =>
        reject(new SteadystateError('Timeout', `${what} did not end within ${deadlineMs} ms`)),
      );
    });
    try {
      return await Promise.race([started, late]);
    } finally {
      timer?.[Symbol.dispose]();
    }
  }

  #recall(view: WorkloadView): Memory {
    const key = workloadKeyText(view.key);
    let memory = this.#memory.get(key);
    if (memory === undefined || memory.uid !== view.uid) {
      const ready = view.status?.conditions.find((condition) => condition.type === 'Ready');
      memory = {
        uid: view.uid,
        pending: undefined,
        conflicts: 0,
        transient: 0,
        messageWrittenAt: undefined,
        ready: ready && ready.status === 'True',
      };
      this.#memory.set(key, memory);
    }
    return memory;
  }

  async #pause(reconciler: Reconciler, request: ReconcileRequest, memory: Memory): Promise<EngineResult> {
    setCondition(
      request.status.conditions,
      {
        type: 'Paused',
        status: 'True',
        reason: 'Paused',
        message: `annotation ${pausedAnnotation} is "true"`,
        observedGeneration: request.workload.generation,
      },
      reconciler.timestamp(),
    );
    return this.#writeStatus(reconciler, request, memory, { kind: 'none' });
  }

  /** Turns an execution into what the controller is asked for, and counts what comes in a row. */
  #settle(reconciler: Reconciler, request: ReconcileRequest, execution: Execution, memory: Memory): EngineResult {
    const { outcome, result } = execution;
    if (outcome.kind !== 'conflict') memory.conflicts = 0;
    if (outcome.kind !== 'transient') memory.transient = 0;
    if (outcome.kind !== 'pending') memory.pending = undefined;
    switch (outcome.kind) {
      case 'completed':
        return fromResult(result);
      case 'terminal':
        this.#tellFailed(reconciler, request, outcome.phase, outcome.error);
        return { kind: 'none' };
      case 'conflict':
        memory.conflicts++;
        if (memory.conflicts < conflictsTold) return { kind: 'failure', error: outcome.error, quiet: true };
        break;
      case 'transient':
        memory.transient++;
        if (memory.transient < transientTold) return { kind: 'failure', error: outcome.error, quiet: false };
        break;
      case 'pending': {
        if (outcome.custom !== undefined) {
          memory.pending = undefined;
          return fromResult(outcome.custom.result);
        }
        const { generation } = request.workload;
        if (memory.pending?.phase !== outcome.phase || memory.pending.generation !== generation)
          memory.pending = { phase: outcome.phase, generation, count: 0 };
        const afterMs = Math.min(pendingDelayMs * 1.5 ** memory.pending.count, maxPendingDelayMs);
        memory.pending.count++;
        return { kind: 'requeue', afterMs };
      }
      default:
        break;
    }
    if (outcome.kind !== 'failed')
      recordFailure(request, reconciler.timestamp(), this.definition.phases.phases(request.event), outcome.phase, outcome.error);
    this.#tellFailed(reconciler, request, outcome.phase, outcome.error);
    return { kind: 'failure', error: outcome.error, quiet: false };
  }

  /** The last writes of a deletion: the status goes, then our finalizer, then nothing. */
  async #finish(reconciler: Reconciler, request: ReconcileRequest): Promise<void> {
    const call = { signal: request.signal };
    await reconciler.port.removeStatus(request.workload, call);
    await reconciler.port.removeFinalizer(request.workload, reconciler.finalizer, call);
    this.#memory.delete(workloadKeyText(request.workload.key));
  }

  /** One write at most, and none when nothing changed. The phase's own error stays first. */
  async #writeStatus(reconciler: Reconciler, request: ReconcileRequest, memory: Memory, result: EngineResult): Promise<EngineResult> {
    const next = request.status.snapshot();
    const before = request.status.written;
    if (sameStatus(before, next)) return result;
    const now = this.#environment.elapsed();
    if (sameButMessages(before, next) && memory.messageWrittenAt !== undefined) {
      const waitMs = memory.messageWrittenAt + messageIntervalMs - now;
      if (waitMs > 0) return sooner(result, waitMs);
    }
    try {
      if (!(await this.#tryWriting(reconciler, request, next))) return sooner(result, 0);
      memory.messageWrittenAt = now;
      return result;
    } catch (error) {
      if (isNotFoundError(error)) return { kind: 'none' };
      const failure = error instanceof Error ? error : new Error(String(error));
      if (result.kind !== 'failure') return { kind: 'failure', error: failure, quiet: false };
      request.log.log('warn', 'the status could not be written either', { error: failure });
      return result;
    }
  }

  /** `false` when the workload is another one now: what was computed is dropped. */
  async #tryWriting(reconciler: Reconciler, request: ReconcileRequest, next: WorkloadStatus): Promise<boolean> {
    let view: WorkloadView | undefined = request.workload;
    for (let left = statusTries; ; left--) {
      try {
        await reconciler.port.writeStatus(view, next, { signal: request.signal });
        return true;
      } catch (error) {
        if (!isConflictError(error) || left === 0) throw error;
        view = await reconciler.port.workload(request.workload.key, { signal: request.signal });
        if (view === undefined || view.uid !== request.workload.uid || view.generation !== request.workload.generation) return false;
      }
    }
  }

  #tellFailed(reconciler: Reconciler, request: ReconcileRequest, phase: string, error: Error): void {
    const before = request.status.written?.conditions.find((condition) => condition.type === phase);
    if (before?.reason === 'Failed' && before.message === error.message) return;
    reconciler.emit({
      regarding: request.workload.key,
      type: 'Warning',
      reason: 'PhaseFailed',
      note: `${phase}: ${error.message}`.slice(0, 1024),
    });
  }

  #tellReady(reconciler: Reconciler, request: ReconcileRequest, memory: Memory): void {
    const condition = request.status.conditions.find((candidate) => candidate.type === 'Ready');
    const ready = condition?.status === 'True';
    if (memory.ready !== ready && (ready || memory.ready !== undefined)) {
      reconciler.emit({
        regarding: request.workload.key,
        type: 'Normal',
        reason: ready ? 'Ready' : 'NotReady',
        note: ready ? 'all children are ready' : `${condition?.reason ?? 'NotReady'}: ${condition?.message ?? ''}`.slice(0, 1024),
      });
    }
    memory.ready = ready;
  }
}

function fromResult(result: PhaseResult): EngineResult {
  if (result === undefined) return { kind: 'none' };
  return result === 'backoff' ? { kind: 'requeue', afterMs: pendingDelayMs } : { kind: 'requeue', afterMs: result.requeueAfterMs };
}

function sooner(result: EngineResult, afterMs: number): EngineResult {
  if (result.kind === 'failure') return result;
  return { kind: 'requeue', afterMs: result.kind === 'requeue' ? Math.min(result.afterMs, afterMs) : afterMs };
}

/** Telling must never fail a reconcile. */
function emitSafely(port: StorePort, log: Logger, event: WorkloadEvent): void {
  try {
    port.emit(event);
  } catch (error) {
    log.log('warn', 'an event could not be told', { error });
  }
}
