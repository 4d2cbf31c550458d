import type { Pointer, Resource, ResourceDraft, ResourceInput, ResourcePhase, TypedKind } from '../resource/index.ts';
import type { CoreState, TeardownOptions } from './core-state.ts';
import type { EventType, StateEvent } from './events.ts';
import type { CallOptions, UpdateOptions, WatchKindOptions } from './options.ts';
import type { Watch } from './watch.ts';

/** Changes a draft in place. An error that it throws comes back to the caller as it is. */
export type Updater<Spec> = (draft: ResourceDraft<Spec>) => void | Promise<void>;

/** What `watchFor` waits for: all that are given must hold. */
export interface WatchForCondition<Spec = unknown> {
  /** One of these. */
  readonly eventTypes?: readonly EventType[];
  /** One of these; sees real resources only. */
  readonly phases?: readonly ResourcePhase[];
  /** Sees real resources only, never tombstones or placeholders. */
  readonly condition?: (resource: Resource<Spec>) => boolean | Promise<boolean>;
  readonly finalizersEmpty?: boolean;
}

export interface ModifyOptions extends CallOptions {
  /** The owner of what is created, and the one that an update needs. @default '' */
  readonly owner?: string;
  /** @default 'running' */
  readonly expectedPhase?: ResourcePhase | 'any';
}

/** CoreState plus helpers; this is the one you use. */
export interface State extends CoreState {
  /** Reads, edits a draft, writes; again on a version conflict only. Nothing changed: no write. Answers the new resource. */
  updateWithConflicts<Spec = unknown>(
    pointer: Pointer<Spec>,
    updater: Updater<Spec>,
    options?: Omit<UpdateOptions, 'currentVersion'>,
  ): Promise<Resource<Spec>>;
  /**
   * Waits until a resource is as asked. Gone only when its end makes the wait impossible: finalizersEmpty or the phase
   * tearingDown is awaited and an existing incarnation goes.
   */
  watchFor<Spec = unknown>(pointer: Pointer<Spec>, condition: WatchForCondition<Spec>, options?: CallOptions): Promise<Resource<Spec>>;
  /** Marks it as being torn down; answers whether it can be destroyed now. Idempotent, also when two callers race. */
  teardown(pointer: Pointer, options?: TeardownOptions): Promise<boolean>;
  /** Tears it down, waits for its finalizers, destroys that incarnation. NotFound only when it is missing at the first look. */
  teardownAndDestroy(pointer: Pointer, options?: TeardownOptions): Promise<void>;
  /** Whatever the owner and phase; retried on conflict. */
  addFinalizer(pointer: Pointer, ...finalizers: readonly string[]): Promise<void>;
  /** Whatever the owner and phase; retried on conflict. */
  removeFinalizer(pointer: Pointer, ...finalizers: readonly string[]): Promise<void>;
  /** Aborts when this incarnation starts to be torn down or goes, at once when it is missing. Its watch ends with the given signal. */
  abortSignalOnTeardown(pointer: Pointer, options: { readonly signal: AbortSignal }): Promise<AbortSignal>;
  /** Updates what is there, or creates it from `empty`, edited by the updater. */
  modify<Spec = unknown>(empty: ResourceInput<Spec> | Resource<Spec>, updater: Updater<Spec>, options?: ModifyOptions): Promise<void>;
  /** The same; answers what is stored now. */
  modifyWithResult<Spec = unknown>(
    empty: ResourceInput<Spec> | Resource<Spec>,
    updater: Updater<Spec>,
    options?: ModifyOptions,
  ): Promise<Resource<Spec>>;
  /** A watch that heals itself: resumes from its bookmark with back-off, resyncs when that expired; ends with the signal or on dispose. */
  follow<Spec = unknown>(kind: TypedKind<Spec>, options?: Omit<WatchKindOptions, 'startFromBookmark' | 'tailEvents'>): Promise<Watch<Spec>>;
}

export type { StateEvent };
