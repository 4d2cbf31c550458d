import type { Logger } from '../environment/index.ts';
import type { ChildMemory } from './child-memory.ts';
import type { ChildRef, Condition, Desired, GroupKind, Live, PortCall, StorePort, WorkloadEvent, WorkloadView } from './port.ts';
import type { ReadinessRules } from './readiness.ts';
import type { StatusDraft } from './status-draft.ts';

export type LifecycleEvent = 'create' | 'update' | 'delete';

/** `withWait`: a child waits until those before it are ready. */
export type ResourceOption = 'withWait';

/** When to look again: after a while, after the failure back-off, or (`undefined`, or after no time) at the next event. */
export type PhaseResult = { readonly requeueAfterMs: number } | 'backoff' | undefined;

/** What a phase answers: `true` to go on with the next one. */
export type PhaseAnswer =
  | boolean
  | {
      readonly proceed: boolean;
      /** With `proceed: true`: the next phases run, but the workload is not ready. @default true */
      readonly ready?: boolean;
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
  /** For every call of the port. */
  readonly call: PortCall;
  /** As read at the start (with our finalizer, once it was added). */
  workload: WorkloadView;
  /** The collection that the workload belongs to, once `resources` has looked it up. */
  collection?: Live;
  readonly event: LifecycleEvent;
  readonly log: Logger;
  /** The status under edit; the engine writes it once, at the end. */
  readonly status: StatusDraft;
  /** The workload bears our finalizer but has no status (restored from a backup, say): its children are found again by label. */
  restored: boolean;
  /** The children as they should be: computed once per reconcile, mutated once each, prepared and frozen. */
  resources(): Promise<readonly Desired[]>;
  /** What was seen of children in this reconcile. */
  readonly seen: Map<string, ChildObservation>;
  /** What spares work between reconciles; nothing depends on it for being right. */
  readonly memory: ChildMemory;
  /** Conditions of the author's own that were set in this reconcile; others than these and the phases' are removed. */
  readonly ownConditions: Set<string>;
  /** Sets a condition of the author's own. Invalid for the name of a phase or of one of the engine's conditions. */
  setCondition(condition: Pick<Condition, 'type' | 'status' | 'reason' | 'message'>): void;
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
  /** The kind of the workload. */
  readonly kind: GroupKind;
  /** Every kind of child that there can be: watched, and searched when an inventory was lost. */
  readonly childKinds: readonly GroupKind[];
  /** Whether there are delete phases of the author's own, so that a finalizer is needed whatever the children are. */
  readonly ownDeletePhases: boolean;
  readonly readiness: ReadinessRules;
  getResources(request: ReconcileRequest): Promise<readonly Desired[]> | readonly Desired[];
  checkReady(request: ReconcileRequest): Promise<boolean | ReadyAnswer> | boolean | ReadyAnswer;
  /** Turns one child into the children that stand for it. */
  mutate?(child: Desired, request: ReconcileRequest): Promise<readonly Desired[]> | readonly Desired[];
  dependencies?(request: ReconcileRequest): readonly Dependency[];
  /** The wall clock, RFC 3339 in seconds. */
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
