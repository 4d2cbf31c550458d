import type { Environment, Logger } from '../environment/index.ts';
import { isConflictError, isInvalidError, isNotFoundError } from '../resource/index.ts';
import { ChildMemory } from './child-memory.ts';
import { checkedChildren, checkIdentities, prepareChildren } from './children.ts';
import { findCollection } from './collection.ts';
import { findCondition, removeCondition, setCondition } from './conditions.ts';
import type { WorkloadDefinition, WorkloadRequest } from './define-workload.ts';
import { kindOfType } from './define-workload.ts';
import type { EngineResult } from './engine-result.ts';
import { fromResult, gone, none, sooner } from './engine-result.ts';
import { asError, classify, ReconcileError } from './errors.ts';
import { registerAction } from './events.ts';
import { orphanFinalizer, pausedAnnotation, workloadKeyText } from './identity.ts';
import { limited } from './limited.ts';
import { recordOutcomes, reservedConditions } from './outcomes.ts';
import { registerDeleteHooks } from './phases/index.ts';
import type { Condition, Desired, GroupKind, StorePort, WorkloadEvent, WorkloadKey, WorkloadStatus, WorkloadView } from './port.ts';
import { recoverInventory } from './recover.ts';
import { replaceRefused } from './refused-status.ts';
import type { Execution } from './registry.ts';
import { hasOwnDeletePhases } from './registry.ts';
import { StatusDraft, sameButMessages, sameStatus } from './status-draft.ts';
import type { ReconcileRequest, Reconciler } from './types.ts';
import { invalidCondition } from './validate.ts';
import { WorkloadMemory } from './workload-memory.ts';

/** A change of message text alone is written at most this often. */
const messageIntervalMs = 60_000;
/** How often a status is written again after a conflict. */
const statusTries = 3;

/** Takes workloads of one kind through their phases. One instance per controller; ports come with each reconcile. */
export class WorkloadEngine<Spec, Input> {
  readonly definition: WorkloadDefinition<Spec, Input>;
  readonly #environment: Environment;
  readonly #childKinds: readonly GroupKind[];
  /** With those that are only removed any more. */
  readonly #knownKinds: readonly GroupKind[];
  readonly #memory = new Map<string, WorkloadMemory>();

  constructor(definition: WorkloadDefinition<Spec, Input>, environment: Environment) {
    this.definition = definition;
    this.#environment = environment;
    this.#childKinds = definition.children.map((child) => kindOfType(child.type));
    this.#knownKinds = [...this.#childKinds, ...(definition.retiredChildren ?? []).map(kindOfType)];
  }

  get finalizer(): string {
    return `${this.definition.definition.type}/finalizer`;
  }

  /** One reconcile of one workload. Rejects like a failure: the caller backs off. */
  async reconcile(key: WorkloadKey, port: StorePort, log: Logger, signal: AbortSignal): Promise<EngineResult> {
    const text = workloadKeyText(key);
    try {
      return await this.#reconcile(key, port, log, { signal, ...(this.#memory.get(text)?.fresh === true && { fresh: true }) });
    } catch (error) {
      signal.throwIfAborted();
      const memory = this.#memory.get(text);
      if (memory === undefined) throw error;
      memory.fresh = true;
      // The same rules as in a phase for what went wrong around them.
      const failure = asError(error);
      const found = classify(error);
      return memory.afterError(found === 'terminal' ? 'failed' : found, failure).result;
    }
  }

  async #reconcile(key: WorkloadKey, port: StorePort, log: Logger, call: ReconcileRequest['call']): Promise<EngineResult> {
    const view = await port.workload(key, call);
    if (view === undefined) {
      this.#memory.delete(workloadKeyText(key));
      return gone;
    }
    if (view.deleting && !view.finalizers.includes(this.finalizer)) return none;
    const memory = this.#recall(view);
    const { request, reconciler } = this.open(view, port, log, call, memory.children);
    // Before anything may write a status: with one nobody looks for children that are not in it.
    await recoverInventory(reconciler, request);
    if (!view.deleting && view.annotations[pausedAnnotation] === 'true') return this.#pause(reconciler, request, memory);
    if (!view.deleting) await registerDeleteHooks(reconciler, request);
    // Torn down in that very moment: nothing is brought up any more.
    if (request.workload.deleting && !view.deleting) return { kind: 'requeue', afterMs: 0 };
    const execution = await this.definition.phases.execute(reconciler, request, request.event);
    call.signal.throwIfAborted();
    memory.fresh = execution.outcome.kind !== 'completed' && execution.outcome.kind !== 'pending';
    const result = this.#settle(reconciler, request, execution, memory);
    if (request.event === 'delete' && execution.completed) return this.#finish(reconciler, request);
    const written = await this.#writeStatus(reconciler, request, memory, result);
    this.#tellReady(reconciler, request, memory);
    return written;
  }

  /** One workload's request and the reconciler for it. */
  open(
    view: WorkloadView,
    port: StorePort,
    log: Logger,
    call: ReconcileRequest['call'],
    memory = new ChildMemory(),
  ): { readonly request: ReconcileRequest; readonly reconciler: Reconciler } {
    const request = this.#request(view, port, log, call, memory);
    return { request, reconciler: this.#reconciler(port, request, log) };
  }

  #reconciler(port: StorePort, request: ReconcileRequest, log: Logger): Reconciler {
    const { definition } = this;
    const own = this.#own(request);
    const { mutate, checkReady, dependencies, phases } = definition;
    return {
      port,
      log,
      emit: (event) => emitSafely(port, log, event),
      fieldManager: port.owner ?? `${definition.kind.kind}-reconciler`,
      finalizer: this.finalizer,
      kind: definition.kind,
      childKinds: this.#knownKinds,
      ownDeletePhases: hasOwnDeletePhases(phases),
      readiness: phases.readiness,
      timestamp: () => this.#timestamp(),
      limited: (what, work) => this.#limited(what, request.signal, work),
      getResources: () => definition.getResources(own),
      checkReady: () => (checkReady === undefined ? true : checkReady(own)),
      ...(mutate && { mutate: (child: Desired) => mutate(child, own) }),
      ...(dependencies && { dependencies: () => dependencies(own) }),
    };
  }

  /** `metav1.Time` knows whole seconds. */
  #timestamp(): string {
    return `${this.#environment.timestamp().slice(0, 19)}Z`;
  }

  #limited<Value>(what: string, signal: AbortSignal, work: () => Promise<Value> | Value): Promise<Value> {
    return limited(this.#environment, what, this.definition.deadlineMs, signal, work);
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
      get collection() {
        return request.collection;
      },
      log,
      request,
    };
  }

  #request(view: WorkloadView, port: StorePort, log: Logger, call: ReconcileRequest['call'], memory: ChildMemory): ReconcileRequest {
    const status = new StatusDraft(view.status, view.generation, view.version);
    let children: Promise<readonly Desired[]> | undefined;
    const request: ReconcileRequest = {
      signal: call.signal,
      call,
      workload: view,
      event: view.deleting ? 'delete' : status.created ? 'update' : 'create',
      log,
      status,
      restored: view.status === undefined && view.finalizers.includes(this.finalizer),
      seen: new Map(),
      memory,
      ownConditions: new Set(),
      setCondition: (condition) => {
        this.#checkConditionType(condition.type);
        request.ownConditions.add(condition.type);
        setCondition(status.conditions, { ...condition, observedGeneration: view.generation }, this.#timestamp());
      },
      recheckAfterMs: undefined,
      resources: () => {
        children ??= this.#compute(port, request);
        return children;
      },
    };
    return request;
  }

  #checkConditionType(type: string): void {
    const phases = (['create', 'update', 'delete'] as const).flatMap((event) => this.definition.phases.phases(event));
    if (reservedConditions.includes(type)) throw invalidCondition(type, 'the engine sets it');
    if (phases.some((phase) => phase.name === type)) throw invalidCondition(type, 'a phase of that name has it');
  }

  async #compute(port: StorePort, request: ReconcileRequest): Promise<readonly Desired[]> {
    const { mutate, getResources, collection } = this.definition;
    const own = this.#own(request);
    if (collection !== undefined) request.collection = await findCollection(port, request, collection, own);
    const computed = checkedChildren('getResources', await this.#limited('getResources', request.signal, () => getResources(own)));
    const children: Desired[] = [];
    for (const child of computed) {
      if (mutate === undefined) children.push(child);
      else children.push(...checkedChildren('mutate', await this.#limited('mutate', request.signal, () => mutate(child, own))));
    }
    checkIdentities(children, this.#childKinds);
    return request.memory.intern(prepareChildren(request.workload, children));
  }

  #recall(view: WorkloadView): WorkloadMemory {
    const key = workloadKeyText(view.key);
    let memory = this.#memory.get(key);
    if (memory === undefined || memory.uid !== view.uid) {
      memory = new WorkloadMemory(view);
      this.#memory.set(key, memory);
    }
    memory.noticeRequest(view);
    return memory;
  }

  /** Nothing is computed: what the status says stays about the version before, so that nobody takes an old Ready for a new one. */
  async #pause(reconciler: Reconciler, request: ReconcileRequest, memory: WorkloadMemory): Promise<EngineResult> {
    const { status, workload } = request;
    status.keepObserved();
    const message = `annotation ${pausedAnnotation} is "true"`;
    const paused = { type: 'Paused', status: 'True', reason: 'Paused', message, observedGeneration: workload.generation } as const;
    setCondition(status.conditions, paused, reconciler.timestamp());
    removeCondition(status.conditions, 'Reconciling');
    return this.#writeStatus(reconciler, request, memory, none);
  }

  /** Turns an execution into what the controller is asked for, and counts what comes in a row. */
  #settle(reconciler: Reconciler, request: ReconcileRequest, execution: Execution, memory: WorkloadMemory): EngineResult {
    const { outcome, result } = execution;
    memory.noticeOutcome(outcome.kind);
    switch (outcome.kind) {
      case 'completed':
        return sooner(fromResult(result), this.definition.resyncMs);
      case 'pending':
        return sooner(memory.afterPending(outcome, request.workload.generation), request.recheckAfterMs);
      case 'terminal':
        this.#tellFailed(reconciler, request, outcome.phase, outcome.error);
        return none;
      default:
        break;
    }
    const { told, result: failure } = memory.afterError(outcome.kind, outcome.error);
    if (!told) {
      // The conditions are left as they are, so they still are about the version before.
      request.status.keepObserved();
      return failure;
    }
    if (outcome.kind !== 'failed') this.#record(reconciler, request, execution);
    this.#tellFailed(reconciler, request, outcome.phase, outcome.error);
    return failure;
  }

  #record(reconciler: Reconciler, request: ReconcileRequest, { steps, outcome }: Execution): void {
    const phases = this.definition.phases.phases(request.event).map(({ name }) => name);
    recordOutcomes(request, reconciler.timestamp(), phases, steps, outcome);
  }

  /** The last writes of a deletion: the status says so, then it goes, then our finalizer, then nothing. */
  async #finish(reconciler: Reconciler, request: ReconcileRequest): Promise<EngineResult> {
    const { port } = reconciler;
    const { call } = request;
    // Without a status there is none to tell, and none to remove.
    const { written } = request.status;
    if (written !== undefined) {
      const last = request.status.snapshot();
      const outcome = sameStatus(written, last) ? 'written' : await this.#tryWriting(reconciler, request, last).catch(unlessRefused);
      if (outcome === 'gone') return none;
      if (outcome === 'dropped') return { kind: 'requeue', afterMs: 0 };
      await port.removeStatus(request.workload, call);
    }
    // Where no collector keeps it, the wish to orphan is ours to take away.
    if (request.status.orphan && !port.caps.garbageCollector) await port.removeFinalizer(request.workload, orphanFinalizer, call);
    await port.removeFinalizer(request.workload, reconciler.finalizer, call);
    this.#memory.delete(workloadKeyText(request.workload.key));
    return none;
  }

  /** One write at most, and none when nothing changed. The phase's own error stays first. */
  async #writeStatus(
    reconciler: Reconciler,
    request: ReconcileRequest,
    memory: WorkloadMemory,
    result: EngineResult,
    refused = false,
  ): Promise<EngineResult> {
    const next = request.status.snapshot();
    const before = request.status.written;
    if (sameStatus(before, next)) return result;
    const now = this.#environment.elapsed();
    if (sameButMessages(before, next) && memory.statusWrittenAt !== undefined) {
      const waitMs = memory.statusWrittenAt + messageIntervalMs - now;
      if (waitMs > 0) return sooner(result, waitMs);
    }
    try {
      const outcome = await this.#tryWriting(reconciler, request, next);
      if (outcome === 'gone') return none;
      if (outcome === 'dropped') return sooner(result, 0);
      memory.statusWrittenAt = now;
      return result;
    } catch (error) {
      request.signal.throwIfAborted();
      memory.fresh = true;
      const failure = asError(error);
      if (!refused && replaceRefused(reconciler, request, error)) return this.#writeStatus(reconciler, request, memory, none, true);
      if (result.kind === 'failure') return { ...result, error: new ReconcileError(result.error, failure) };
      const found = classify(error);
      return memory.afterError(found === 'terminal' ? 'failed' : found, failure).result;
    }
  }

  /** `dropped`: the workload is another one now, so that what was computed means nothing. */
  async #tryWriting(reconciler: Reconciler, request: ReconcileRequest, next: WorkloadStatus): Promise<'written' | 'dropped' | 'gone'> {
    const { port } = reconciler;
    for (let left = statusTries; ; left--) {
      try {
        request.workload = await port.writeStatus(request.workload, next, request.call);
        request.status.markWritten(next);
        return 'written';
      } catch (error) {
        if (isNotFoundError(error)) return 'gone';
        if (!isConflictError(error) || left === 0) throw error;
        const view = await port.workload(request.workload.key, { ...request.call, fresh: true });
        if (view === undefined) return 'gone';
        if (view.uid !== request.workload.uid || view.generation !== request.workload.generation) return 'dropped';
        request.workload = view;
      }
    }
  }

  /** On a new reason only: a message that is another each time is no news. */
  #tellFailed(reconciler: Reconciler, request: ReconcileRequest, phase: string, error: Error): void {
    const before = request.status.written?.conditions ?? [];
    const reasonOf = (conditions: readonly Condition[], type: string): string | undefined => findCondition(conditions, type)?.reason;
    const sameReason = reasonOf(before, 'Ready') === reasonOf(request.status.conditions, 'Ready');
    if (reasonOf(before, phase) === 'Failed' && sameReason) return;
    registerAction(reconciler, request, 'PhaseFailed', undefined, `${phase}: ${error.message}`);
  }

  #tellReady(reconciler: Reconciler, request: ReconcileRequest, memory: WorkloadMemory): void {
    const condition = request.status.conditions.find((candidate) => candidate.type === 'Ready');
    const ready = condition?.status === 'True';
    if (memory.ready !== ready && (ready || memory.ready !== undefined)) {
      const note = ready ? 'all children are ready' : `${condition?.reason ?? 'NotReady'}: ${condition?.message ?? ''}`;
      registerAction(reconciler, request, ready ? 'Ready' : 'NotReady', undefined, note);
    }
    memory.ready = ready;
  }
}

/** A last status that the store cannot hold is one that nobody reads any more. */
function unlessRefused(error: unknown): 'written' {
  if (isInvalidError(error)) return 'written';
  throw error;
}

/** Telling must never fail a reconcile. */
function emitSafely(port: StorePort, log: Logger, event: WorkloadEvent): void {
  try {
    port.emit(event);
  } catch (error) {
    log.log('warn', 'an event could not be told', { error });
  }
}
