export { childChanged, workloadChanged } from './changes.ts';
export { areDesired, needsUpdate } from './children.ts';
export { findCondition, removeCondition, setCondition } from './conditions.ts';
export type { WorkloadCollection, WorkloadDefinition, WorkloadOptions, WorkloadRequest } from './define-workload.ts';
export { defineWorkload, desiredChild, kindOfType, typeOfKind } from './define-workload.ts';
export { walkDependencies } from './dependency-walk.ts';
export type { Difference } from './differences.ts';
export { differences } from './differences.ts';
export * from './embedded/index.ts';
export { WorkloadEngine } from './engine.ts';
export type { EngineResult } from './engine-result.ts';
export {
  ChildrenError,
  DeadlineError,
  immutableReason,
  isOptimisticLockError,
  PendingError,
  pendingError,
  ReconcileError,
  TerminalError,
  terminalError,
} from './errors.ts';
export { registerAction } from './events.ts';
export {
  allowEmptyAnnotation,
  childName,
  orphanFinalizer,
  parentAnnotation,
  parentIdLabel,
  pausedAnnotation,
  readParent,
  reconcileAtAnnotation,
} from './identity.ts';
export { updateResourceConditions } from './observe.ts';
export {
  checkReadyPhase,
  completePhase,
  createOrUpdate,
  createResourcesPhase,
  deleteResourcesPhase,
  deletionCompletePhase,
  dependencyPhase,
  handleResourcePhaseExit,
  registerDeleteHooks,
} from './phases/index.ts';
export type { Plan, PlannedChild } from './plan.ts';
export { plan } from './plan.ts';
export type * from './port.ts';
export type { ReadinessRule } from './readiness.ts';
export { areReady, isReady, ReadinessRules, readiness, registerReadiness } from './readiness.ts';
export type { Execution, Outcome, Pending, Phase, PhaseOption, Step } from './registry.ts';
export { createRegistry, Registry, registerDefaultPhases, withCustomRequeueResult, withResourceOptions } from './registry.ts';
export { StatusDraft } from './status-draft.ts';
export type {
  ChildObservation,
  Dependency,
  HandlerFunc,
  LifecycleEvent,
  PhaseAnswer,
  PhaseResult,
  ReadyAnswer,
  ReconcileRequest,
  Reconciler,
  ResourceOption,
} from './types.ts';
export { checkDependencyCycles, validateWorkload } from './validate.ts';
export { saveStatus } from './write-ahead.ts';
