import type { Logger, Span } from '../environment/index.ts';
import type { Kind, Metadata, Pointer, Resource, ResourceInput, TypedKind } from '../resource/index.ts';
import type {
  CallOptions,
  CreateOptions,
  DestroyOptions,
  ListOptions,
  ModifyOptions,
  ReadOptions,
  ResourceList,
  TeardownOptions,
  UpdateOptions,
  Updater,
} from '../state/index.ts';
import type { AnyNamespace } from './any-namespace.ts';

/**
 * What a controller reads and is woken by.
 * Classic controllers: `weak`, `strong` (may add finalizers), `destroyReady` (wakes for what is tearing down without finalizers).
 * Queue controllers: `primary` (its keys are the queue's), `mapped` (turned into primary keys), `mappedDestroyReady`.
 */
export interface Input {
  /** `anyNamespace`: the type wherever it is, also in namespaces that come later. */
  readonly namespace: string | AnyNamespace;
  readonly type: string;
  readonly id?: string;
  readonly kind: 'weak' | 'strong' | 'destroyReady' | 'primary' | 'mapped' | 'mappedDestroyReady';
}

/** What a controller writes, in any namespace: `exclusive` is the only writer of that type. */
export interface Output {
  readonly type: string;
  readonly kind: 'exclusive' | 'shared';
}

/** The state, limited to what the controller declared: inputs (and output types) to read. */
export interface ControllerReader {
  /** Of a cached kind: from the cache, once that is filled. */
  get<Spec = unknown>(pointer: Pointer<Spec>, options?: ReadOptions): Promise<Resource<Spec>>;
  /** The same. */
  list<Spec = unknown>(kind: TypedKind<Spec>, options?: ListOptions): Promise<ResourceList<Spec>>;
  /** The namespaces in which a type has resources, past the cache, sorted. Of an input in any namespace, or an output. */
  namespaces(type: string): Promise<readonly string[]>;
  /** The same reads past the cache, linearizable. */
  readonly uncached: Pick<ControllerReader, 'get' | 'list'>;
  abortSignalOnTeardown(pointer: Pointer, options: CallOptions & { readonly signal: AbortSignal }): Promise<AbortSignal>;
}

/** … and output types to write. What is created carries the controller's name as owner unless the options say otherwise. */
export interface ControllerWriter {
  create<Spec = unknown>(
    resource: ResourceInput<Spec> | Resource<Spec>,
    options?: CreateOptions & { readonly noOwner?: boolean },
  ): Promise<Resource<Spec>>;
  update<Spec = unknown>(resource: ResourceInput<Spec> | Resource<Spec>, options?: UpdateOptions): Promise<Resource<Spec>>;
  modify<Spec = unknown>(
    empty: ResourceInput<Spec> | Resource<Spec>,
    updater: Updater<Spec>,
    options?: ModifyOptions & { readonly noOwner?: boolean },
  ): Promise<Resource<Spec>>;
  updateWithConflicts<Spec = unknown>(
    pointer: Pointer<Spec>,
    updater: Updater<Spec>,
    options?: Omit<UpdateOptions, 'currentVersion'>,
  ): Promise<Resource<Spec>>;
  teardown(pointer: Pointer, options?: TeardownOptions): Promise<boolean>;
  destroy(pointer: Pointer, options?: DestroyOptions): Promise<void>;
  /** Strong, primary and mapped inputs only. */
  addFinalizer(pointer: Pointer, ...finalizers: readonly string[]): Promise<void>;
  /** The same; no error when the resource is gone. */
  removeFinalizer(pointer: Pointer, ...finalizers: readonly string[]): Promise<void>;
}

/** What a controller gets for one run. */
export interface ControllerContext extends ControllerReader, ControllerWriter {
  /** The controller's name. */
  readonly name: string;
  /**
   * Aborts when the runtime is to stop. A run that is on its way may go on, read and write until the grace period is over;
   * after that its calls reject with Closed.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** This run, for tracing; outside of a reconcile one that records nothing. */
  readonly span: Span;
}

export interface ReconcileRequest {
  readonly pointer: Pointer;
}

/** What a reconcile asks for: nothing, or to run again after a while. Throw `requeueError` or `skipError` for the others. */
export interface ReconcileResult {
  readonly requeueAfterMs?: number;
  /** What it waits for, in words: told in the status of the key until its next run. */
  readonly blockedBecause?: string;
}

/** What a mapper sees of a changed mapped input; on an update it is asked for the old and for the new value. */
export interface MappedInput {
  readonly metadata: Metadata;
  /** The resource is gone; `metadata` is the last known. */
  readonly destroyed: boolean;
}

/** A controller with a keyed queue: one key never runs twice at once. */
export interface QueueController {
  readonly name: string;
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  /** How many keys may run at once. @default the runtime's, 1 */
  readonly concurrency?: number;
  reconcile(context: ControllerContext, request: ReconcileRequest): Promise<ReconcileResult | void>;
  /** Turns a change of a mapped input into primary keys. Retried when it throws. */
  mapInput?(context: ControllerContext, input: MappedInput): Promise<readonly Pointer[]> | readonly Pointer[];
  /**
   * How long a wake-up through a mapped input may be held, milliseconds, so that several become one run. A run that is
   * due earlier stays so. @default 0
   */
  mappedDelayMs?(pointer: Pointer): number;
  /** Runs beside the workers; restarted with back-off when it fails. */
  run?(context: ControllerContext & { readonly wake: (pointer: Pointer) => void }): Promise<void>;
  /** After all workers have ended. */
  shutdown?(context: ControllerContext): Promise<void>;
}

/** What a classic controller gets for one run. */
export interface ClassicContext extends ControllerContext {
  /**
   * Waits until an input may have changed; several changes are one wake-up, and the first is there at the start. `false`: the
   * runtime is to stop.
   */
  nextWakeUp(): Promise<boolean>;
  /** Wakes this controller once more. */
  queueReconcile(): void;
  /** Replaces the inputs; wakes when that adds one. Invalid, with nothing changed, when they are no good. */
  updateInputs(inputs: readonly Input[]): void;
  /** After a good cycle: the next failure waits for the first back-off again. */
  resetRestartBackoff(): void;
  /** From here on what is written counts as touched. */
  startTrackingOutputs(): void;
  /**
   * Tears down what this controller owns of these kinds and has not touched since `startTrackingOutputs`, and destroys what
   * is torn down and free of finalizers, now or later. Rejects, before anything is taken down, when a tracked write failed with
   * anything but a phase conflict.
   */
  cleanupOutputs(...kinds: readonly Kind[]): Promise<void>;
}

/** A controller with one logical thread, that looks at everything whenever it wakes. */
export interface ClassicController {
  readonly name: string;
  /** Where it starts from, at each start. */
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  /** Returns: it is finished. Throws: it is started again, after a back-off. */
  run(context: ClassicContext): Promise<void>;
  /** After the run has ended. */
  shutdown?(context: ControllerContext): Promise<void>;
}

export type AnyController = QueueController | ClassicController;

export function isQueueController(controller: AnyController): controller is QueueController {
  return 'reconcile' in controller;
}
