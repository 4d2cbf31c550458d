import type { Kind, NamespaceSpec, Pointer, Resource, ResourceInput, ResourcePhase, TypedKind } from '../resource/index.ts';
import type { FinalizerNote } from './finalizer-note.ts';
import type {
  CallOptions,
  CreateOptions,
  DestroyOptions,
  ListOptions,
  ReadOptions,
  UpdateOptions,
  WatchKindOptions,
  WatchOptions,
} from './options.ts';
import type { AggregatedWatch, Watch } from './watch.ts';

/** What a backend keeps of the finer promises; the conformance suite checks that the flags tell the truth. */
export interface Capabilities {
  /** One revision over all kinds; a list is a snapshot at one revision. */
  readonly globalRevision: boolean;
  /** Every incarnation has a uid of its own. */
  readonly incarnations: boolean;
  /** `watchKinds` gives several kinds in commit order. */
  readonly multiKindWatch: boolean;
  readonly tailEvents: boolean;
  /** Bookmarks survive a restart of the store. */
  readonly durableBookmarks: boolean;
}

/** A list: resources sorted by the UTF-8 bytes of their ids, a snapshot at `revision`. Frozen. */
export interface ResourceList<Spec = unknown> {
  readonly items: readonly Resource<Spec>[];
  /** Absent where the backend has no common revision. */
  readonly revision?: number;
}

/**
 * The contract of a backend: one method is one effect, and nothing happens after its answer. Users take `State`,
 * which `wrapCore` builds on any of these.
 */
export interface CoreState {
  readonly capabilities: Capabilities;

  /** NotFound when it is not there. */
  get<Spec = unknown>(pointer: Pointer<Spec>, options?: ReadOptions): Promise<Resource<Spec>>;

  /** An unknown kind is an empty list and allocates nothing. */
  list<Spec = unknown>(kind: TypedKind<Spec>, options?: ListOptions): Promise<ResourceList<Spec>>;

  /**
   * Conflict (alreadyExists) when it is there. The owner comes from the options; an owner in the metadata that differs
   * is an owner conflict. Version, uid and timestamps of the argument are ignored; finalizers, labels, annotations and
   * phase are kept. Answers the stored resource; the argument is never changed.
   */
  create<Spec = unknown>(resource: ResourceInput<Spec> | Resource<Spec>, options?: CreateOptions): Promise<Resource<Spec>>;

  /**
   * Checks in this order: NotFound, owner conflict, version conflict, phase conflict. The version of the argument (or
   * `currentVersion`) is the precondition. An update without a change still writes a new version and emits an event.
   */
  update<Spec = unknown>(resource: ResourceInput<Spec> | Resource<Spec>, options?: UpdateOptions): Promise<Resource<Spec>>;

  /** Checks in this order: NotFound, owner conflict, incarnation conflict, pendingFinalizers conflict. */
  destroy(pointer: Pointer, options?: DestroyOptions): Promise<void>;

  /** First the present value as `created` (or `destroyed` with a tombstone), then every change. */
  watch<Spec = unknown>(pointer: Pointer<Spec>, options?: WatchOptions): Promise<Watch<Spec>>;

  /** No initial events unless asked for. */
  watchKind<Spec = unknown>(kind: TypedKind<Spec>, options?: WatchKindOptions): Promise<Watch<Spec>>;

  /** The same in batches. */
  watchKindAggregated<Spec = unknown>(kind: TypedKind<Spec>, options?: WatchKindOptions): Promise<AggregatedWatch<Spec>>;

  /**
   * Several kinds in commit order, in batches. Without `multiKindWatch` a backend refuses it as Unsupported, or gives the changes of
   * different kinds in the order in which they arrive, without bookmarks and revisions, and refuses options that need a place. A denied or unknown kind arrives as `kindErrored` and does not end the rest.
   * Bootstrap: all contents (kind by kind in the given order, each sorted by id), then one `bootstrapped`.
   */
  watchKinds(kinds: readonly Kind[], options?: WatchKindOptions): Promise<AggregatedWatch>;

  /**
   * In which namespaces a type has resources: `created` for each, sorted, then `bootstrapped`; after that `created` when a
   * namespace gets its first resource and `destroyed` when it loses its last. One that comes and goes between two looks is
   * not told. An event carries the description of a namespace, whose id is its name, and neither revision nor bookmark:
   * after a failure, watch anew. Absent: the store cannot tell.
   */
  watchNamespaces?(type: string, options?: CallOptions): Promise<AggregatedWatch<NamespaceSpec>>;

  /**
   * Who holds a resource, since when: a note for each of its finalizers, in their order. The store keeps them beside the resource;
   * they go with the finalizer. NotFound when the resource is not there. Absent: the store remembers no such thing.
   */
  finalizerNotes?(pointer: Pointer, options?: CallOptions): Promise<readonly FinalizerNote[]>;

  /** Native teardown, where the backend has one; every wrapper passes it through. */
  teardown?(pointer: Pointer, options?: TeardownOptions): Promise<boolean>;
  /** Native teardown and destroy, where the backend has it. */
  teardownAndDestroy?(pointer: Pointer, options?: TeardownOptions): Promise<void>;
  /** Resolves once reads see `revision`, which may be one that somebody else told of. Absent: reads always see what was acknowledged. */
  waitForRevision?(revision: number, options?: CallOptions): Promise<void>;
}

export interface TeardownOptions extends CallOptions {
  /** Must equal the stored owner exactly, where the resource is running still. @default '' */
  readonly owner?: string;
  /** Only this incarnation; another one is an incarnation conflict. Only on a store that tells incarnations apart. */
  readonly uid?: string;
}

export type { ResourcePhase };
