/**
 * The one thing that the engine knows of a store: the embedded broker and a Kubernetes API server each give one.
 * Every method throws only typed errors: Conflict, Invalid, Forbidden, Throttled, Unavailable, Ambiguous,
 * Unsupported (with the kind, when it is not served). At most one write a method; no loop, wait or timer inside.
 */
export interface StorePort {
  readonly caps: PortCapabilities;
  /** The name under which children are owned; absent where objects have no such field. */
  readonly owner?: string;
  workloads(kind: GroupKind, options: PortCall & { readonly namespace?: string }): Promise<readonly WorkloadKey[]>;
  /** `undefined` when it is not there. */
  workload(key: WorkloadKey, options: PortCall): Promise<WorkloadView | undefined>;
  /** Cached unless fresh, read-your-writes, frozen. */
  get(ref: ChildRef, options: PortCall): Promise<Live | undefined>;
  /** Absent namespace: all of them. */
  list(
    kind: GroupKind,
    options: PortCall & { readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> },
  ): Promise<readonly Live[]>;
  /** Pure: whether `live` is as `desired` asks. `entry` is the child's inventory entry, where there is one. */
  diff(desired: Desired, live: Live, entry: InventoryEntry | undefined): 'same' | 'differs';
  /**
   * Idempotent; never resurrects another uid (`live` is what the decision was made on). A change of what cannot change is a
   * terminal error with the reason `Immutable`.
   */
  apply(
    desired: Desired,
    options: PortCall & { readonly live?: Live; readonly owner: WorkloadView; readonly force: boolean; readonly entry?: InventoryEntry },
  ): Promise<{ readonly outcome: 'created' | 'changed' | 'unchanged'; readonly live: Live }>;
  /**
   * One step, never blocks. Embedded: teardown, then destroy when it is free of finalizers. With `owner`, what does not bear its
   * mark any more is gone, as another uid is: another workload has it now.
   */
  remove(
    ref: ChildRef,
    uid: string,
    options: PortCall & { readonly propagation: 'Foreground' | 'Background' | 'Orphan'; readonly owner?: WorkloadKey },
  ): Promise<'gone' | 'terminating'>;
  /** Removes our marks from a child that lives on (orphaning). */
  release(ref: ChildRef, uid: string, options: PortCall & { readonly owner: WorkloadKey }): Promise<void>;
  /** Idempotent. Answers the view as it is now. */
  addFinalizer(view: WorkloadView, name: string, options: PortCall): Promise<WorkloadView>;
  /** Idempotent; no error when the workload is gone. */
  removeFinalizer(view: WorkloadView, name: string, options: PortCall): Promise<void>;
  /** An equal status costs no call. Conflict when another wrote meanwhile. */
  writeStatus(view: WorkloadView, next: WorkloadStatus, options: PortCall): Promise<WorkloadView>;
  /** Removes what holds the status, when the workload goes. Kubernetes: nothing to do. */
  removeStatus(view: WorkloadView, options: PortCall): Promise<void>;
  namespaceState(name: string, options: PortCall): Promise<'active' | 'terminating' | 'absent' | 'unknown'>;
  watch(kinds: readonly GroupKind[], onChange: (change: PortChange) => void, options: PortCall): Promise<AsyncDisposable>;
  /** Never fails a reconcile. */
  emit(event: WorkloadEvent): void;
}

export interface PortCall {
  readonly signal: AbortSignal;
  /** Past every cache: after a conflict, and before anything is removed for want of a parent. @default false */
  readonly fresh?: boolean;
}

export interface PortCapabilities {
  readonly garbageCollector: boolean;
  readonly ownerReferences: boolean;
  readonly namespaces: boolean;
  readonly events: boolean;
}

/** Identity never has the version in it. Embedded: type `<Kinds>.<group>` ↔ group and kind (`kind` is then `<Kinds>`). */
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

export interface WorkloadKey extends GroupKind {
  readonly namespace: string;
  readonly name: string;
}

export interface ChildRef extends GroupKind {
  /** API version to ask for; empty on the embedded store. */
  readonly version: string;
  /** Empty: cluster-scoped. */
  readonly namespace: string;
  readonly name: string;
}

/** A child as it should be. */
export interface Desired {
  readonly ref: ChildRef;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Embedded: the spec. Kubernetes: the whole object besides metadata. */
  readonly body: unknown;
  /** Names (`Desired.name`) of children that come first; only with `dependsOn` ordering. */
  readonly dependsOn?: readonly string[];
  /** A name for `dependsOn` and messages, unique in the workload. @default `<kind>/<name>` */
  readonly name?: string;
  readonly options?: ChildOptions;
  /** Place in the order of deletion, highest first. Filled in by the engine. */
  readonly order?: number;
}

export interface ChildOptions {
  /** @default 'ifUnowned' */
  readonly adopt?: 'ifUnowned' | 'never' | 'always';
  /** @default 'fail' */
  readonly onImmutable?: 'fail' | 'recreate';
  /** @default 'delete' */
  readonly onPrune?: 'delete' | 'orphan';
  /** @default 'delete' */
  readonly onDelete?: 'delete' | 'orphan';
  /** Deletion goes from the highest order to the lowest. @default the level of `dependsOn`, else the position in the desired list */
  readonly deletionOrder?: number;
}

/** A child or any object as it is. Frozen. */
export interface Live {
  readonly ref: ChildRef;
  readonly uid: string;
  /** Opaque. */
  readonly version: string;
  readonly generation: number | undefined;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Who owns it, in words: embedded `metadata.owner`, Kubernetes the controller reference; empty: nobody. */
  readonly owner: string;
  readonly body: unknown;
  /** Kubernetes `.status`; embedded: the spec of the status companion. `undefined`: there is none. */
  readonly status: unknown;
  /** Embedded: what the type's definition says of its readiness (or its companion); Kubernetes: `undefined`, the rule table decides. */
  readonly ready?: import('../resource/index.ts').Readiness;
}

/** One workload as read from the store. */
export interface WorkloadView {
  readonly key: WorkloadKey;
  readonly uid: string;
  readonly version: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
  /** `undefined` before the first write. */
  readonly status: WorkloadStatus | undefined;
  /** For the port's own use. */
  readonly handle?: unknown;
}

export interface WorkloadStatus {
  /** Set by `completePhase`, never reset for this uid. */
  readonly created: boolean;
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  readonly children: readonly InventoryEntry[];
  /** Embedded: the workload's version that this was computed from. */
  readonly observedVersion?: string;
  /** The workload goes and its children stay: its finalizer `orphan` was seen. */
  readonly orphan?: boolean;
  /** Whatever else the workload's author keeps there. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** The `metav1.Condition` form. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  /** RFC 3339; moves only when `status` does. */
  readonly lastTransitionTime: string;
}

/** What the workload remembers of one child. */
export interface InventoryEntry extends ChildRef {
  /** Empty while only intended. */
  readonly uid: string;
  readonly order: number;
  /** Of the desired state, with a scheme number in front (`1:…`). */
  readonly digest: string;
  readonly state: 'intended' | 'applied' | 'deleting';
  readonly doneDigest?: string;
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly onPrune?: 'delete' | 'orphan';
  readonly onDelete?: 'delete' | 'orphan';
  /** Not desired any more, and to go: another workload that wants it may have it. */
  readonly unwanted?: true;
}

/** What a watch tells: which object changed, and to whom it belongs. The engine re-reads. */
export interface PortChange {
  readonly ref: ChildRef;
  /** The workload itself, one of its children, or something else that is watched (a dependency). */
  readonly parent: WorkloadKey | undefined;
  readonly destroyed: boolean;
  /** The kind's watch lost its place: everything of that kind may have changed. */
  readonly resync?: boolean;
}

export interface WorkloadEvent {
  readonly regarding: WorkloadKey;
  readonly related?: ChildRef;
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'Created' | 'Updated' | 'Deleted' | 'Adopted' | 'PruneBlocked' | 'PhaseFailed' | 'Ready' | 'NotReady';
  readonly note: string;
}
