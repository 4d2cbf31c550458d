import type { Logger } from '../environment/index.ts';
import type { ChildRef, Desired, GroupKind, Live, StorePort, WorkloadEvent, WorkloadView } from './port.ts';
import type { StatusDraft } from './status-draft.ts';

export type LifecycleEvent = 'create' | 'update' | 'delete';

export type ResourceOption = 'withWait';

/** When to look again: after a while, after the failure back-off, or at the next event. */
export type PhaseResult = { readonly requeueAfterMs: number } | 'backoff' | undefined;

/** What a phase answers: `true` to go on with the next one. */
export type PhaseAnswer =
  | boolean
  | {
      readonly proceed: boolean;
      /** CamelCase. @default 'Pending' */
      readonly reason?: string;
      readonly message?: string;
      readonly requeueAfterMs?: number;
    };

/** One phase. Throwing is a failure: it is retried with back-off, unless the error is terminal. */
export type HandlerFunc = (reconciler: Reconciler, request: ReconcileRequest, options: readonly ResourceOption[]) => Promise<PhaseAnswer>;

/** One workload on its way through one reconcile. */
export interface ReconcileRequest {
  readonly signal: AbortSignal;
  /** As read at the start (with our finalizer, once it was added). */
  workload: WorkloadView;
  readonly event: LifecycleEvent;
  readonly log: Logger;
  /** The status under edit; the engine writes it once, at the end. */
  readonly status: StatusDraft;
  /** The children as they should be: computed once per reconcile, mutated once each, prepared and frozen. */
  resources(): Promise<readonly Desired[]>;
  /** What was seen of children in this reconcile. */
  readonly seen: Map<string, ChildObservation>;
  /** Which dependency became unready while the workload was up already. */
  dependencyMessage?: string;
  /** Smallest time after which something asked to be looked at again, milliseconds. */
  recheckAfterMs: number | undefined;
}

/** What was found out about a child. */
export interface ChildObservation {
  readonly live: Live | undefined;
  readonly ready: boolean;
  readonly failed: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Knows how to compute the children of one kind of workload. */
export interface Reconciler {
  readonly port: StorePort;
  readonly log: Logger;
  emit(event: WorkloadEvent): void;
  /** `<Kind>-reconciler`. */
  readonly fieldManager: string;
  /** The name of our finalizer. */
  readonly finalizer: string;
  /** Every kind of child that there can be: watched, and searched when an inventory was lost. */
  readonly childKinds: readonly GroupKind[];
  getResources(request: ReconcileRequest): Promise<readonly Desired[]> | readonly Desired[];
  checkReady(request: ReconcileRequest): Promise<boolean | ReadyAnswer> | boolean | ReadyAnswer;
  /** Turns one child into the children that stand for it. */
  mutate?(child: Desired, request: ReconcileRequest): Promise<readonly Desired[]> | readonly Desired[];
  dependencies?(request: ReconcileRequest): readonly Dependency[];
  /** The wall clock, RFC 3339. */
  timestamp(): string;
  /** Ends with the reconcile, or after the deadline of user code. */
  limited<Value>(what: string, work: () => Promise<Value> | Value): Promise<Value>;
}

export interface ReadyAnswer {
  readonly ready: boolean;
  readonly reason?: string;
  readonly message?: string;
}

/** Something that must exist and be ready before children are made. */
export interface Dependency extends GroupKind {
  /** One by name; absent: all of the kind. */
  readonly name?: string;
  /** Absent: the workload's own; `*`: all. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** `all`: every one that is selected, and at least one. @default 'all' */
  readonly require?: 'all' | 'any';
}

export type { ChildRef };
