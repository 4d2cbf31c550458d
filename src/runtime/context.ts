import type { Environment, Logger, Span } from '../environment/index.ts';
import { noSpan } from '../environment/index.ts';
import type { Pointer, Resource } from '../resource/index.ts';
import { canonicalText, isNotFoundError, utf8Length } from '../resource/index.ts';
import type { CallOptions, CoreState, State } from '../state/index.ts';
import { listNamespaces, notFound, optionalCalls, owned, wrapCore } from '../state/index.ts';
import type { AccessLimits } from './access.ts';
import type { Breather } from './breather.ts';
import type { Cache } from './cache.ts';
import type { ControllerContext, ControllerReader } from './controller.ts';
import type { Instruments } from './instruments.ts';
import type { WriteLimiter } from './write-limiter.ts';

export interface ContextOptions {
  readonly name: string;
  readonly core: CoreState;
  readonly environment: Environment;
  readonly limits: AccessLimits;
  readonly log: Logger;
  /** Aborts when the runtime is to stop. */
  readonly signal: AbortSignal;
  /** Aborts when the grace period is over as well: nothing is read or written after that. */
  readonly hardSignal: AbortSignal;
  readonly instruments: Instruments;
  readonly cache: Cache;
  readonly breather: Breather;
  readonly limiter: WriteLimiter | undefined;
  /** Told of each write that was done; without a version it was a destroy, or its outcome is unknown. */
  readonly onWrite?: (pointer: Pointer, version: string | undefined) => void;
  /** The run that reads and writes, where runs are traced. */
  readonly spanOf?: () => Span;
  /** Told of each attempt to write an output, with its outcome. */
  readonly onAttempt?: (pointer: Pointer, attempt: Promise<unknown>) => void;
}

/** The state, limited to what one controller declared. */
export function controllerContext(options: ContextOptions): ControllerContext {
  const { name, limits, instruments, signal, hardSignal, log, cache } = options;
  const state: State = wrapCore(owned(recorded(options), name), { environment: options.environment });
  const call = { signal: hardSignal };
  /** A store in the same process answers in microtasks: a long row of calls must not starve timers and input. */
  const breathe = async (): Promise<void> => {
    const pause = options.breather.pause();
    if (pause !== undefined) await pause;
    hardSignal.throwIfAborted();
  };

  const uncached: ControllerReader['uncached'] = {
    async get(pointer, more) {
      limits.checkRead(pointer);
      await breathe();
      instruments.reads.add(1, instruments.labels);
      return state.get(pointer, { ...call, ...more });
    },
    async list(kind, more) {
      limits.checkList(kind);
      await breathe();
      instruments.reads.add(1, instruments.labels);
      return state.list(kind, { ...call, ...more });
    },
  };

  const write = async <Result>(pointer: Pointer, body: () => Promise<Result>): Promise<Result> => {
    limits.checkWrite(pointer);
    await options.limiter?.acquire(hardSignal);
    await breathe();
    instruments.writes.add(1, instruments.labels);
    return body();
  };
  const attempt = <Result>(pointer: Pointer, body: () => Promise<Result>): Promise<Result> => {
    const result = write(pointer, body);
    options.onAttempt?.(pointer, result);
    return result;
  };
  const changeFinalizers = async (pointer: Pointer, body: () => Promise<void>): Promise<void> => {
    limits.checkFinalizer(pointer);
    await options.limiter?.acquire(hardSignal);
    await breathe();
    instruments.writes.add(1, instruments.labels);
    await body();
  };

  return {
    name,
    signal,
    log,
    span: noSpan,
    async get(pointer, more) {
      const view = cache.view(pointer);
      if (view === undefined || more?.raw === true) return uncached.get(pointer, more);
      limits.checkRead(pointer);
      instruments.reads.add(1, instruments.labels);
      // Once it is filled, reads made together see one revision: nothing is awaited before the look.
      if (!view.filled) await cache.filled(pointer, more?.signal ?? hardSignal);
      const found = view.get(pointer.id);
      if (found === undefined) throw notFound(pointer);
      return found as never;
    },
    async list(kind, more = {}) {
      const view = cache.view(kind);
      if (view === undefined || more.raw === true) return uncached.list(kind, more);
      limits.checkList(kind);
      instruments.reads.add(1, instruments.labels);
      if (!view.filled) await cache.filled(kind, more.signal ?? hardSignal);
      return cache.list(kind, view, more) as never;
    },
    async namespaces(type) {
      limits.checkNamespaces(type);
      await breathe();
      instruments.reads.add(1, instruments.labels);
      return listNamespaces(state, type, call);
    },
    uncached,
    async abortSignalOnTeardown(pointer, more) {
      limits.checkRead(pointer);
      return state.abortSignalOnTeardown(pointer, more);
    },
    create: (resource, { noOwner, ...more } = {}) =>
      attempt(resource.metadata, () => state.create(resource, noOwner === true ? { ...more, owner: '' } : more)),
    update: (resource, more) => attempt(resource.metadata, () => state.update(resource, more)),
    modify: (empty, updater, { noOwner, ...more } = {}) =>
      attempt(empty.metadata, () => state.modifyWithResult(empty, updater, noOwner === true ? { ...more, owner: '' } : more)),
    updateWithConflicts: (pointer, updater, more) => attempt(pointer, () => state.updateWithConflicts(pointer, updater, more)),
    teardown: (pointer, more) => write(pointer, () => state.teardown(pointer, more)),
    destroy: (pointer, more) => write(pointer, () => state.destroy(pointer, more)),
    addFinalizer: (pointer, ...finalizers) => changeFinalizers(pointer, () => state.addFinalizer(pointer, ...finalizers)),
    removeFinalizer: (pointer, ...finalizers) =>
      changeFinalizers(pointer, async () => {
        try {
          await state.removeFinalizer(pointer, ...finalizers);
        } catch (error) {
          // What is gone has no finalizer any more.
          if (!isNotFoundError(error)) throw error;
        }
      }),
  };
}

/** The core below, with every write noted. After the grace period not even a retry of a helper gets through. */
function recorded({ hardSignal, onWrite, cache, name, limiter, ...options }: ContextOptions): CoreState {
  const core = options.spanOf === undefined ? options.core : withinSpan(options.core, options.spanOf);
  const wrote = <Spec>(resource: Resource<Spec>): Resource<Spec> => {
    const { version, uid } = resource.metadata;
    if (limiter?.countsBytes) limiter.spend(utf8Length(canonicalText(resource.spec)));
    cache.wrote(name, resource.metadata, { version, uid });
    onWrite?.(resource.metadata, version);
    return resource;
  };
  const ended = (pointer: Pointer, end: 'tornDown' | 'gone', uid?: string): void => {
    cache.wrote(name, pointer, { end, ...(uid !== undefined && { uid }) });
    onWrite?.(pointer, undefined);
  };
  const { teardown, teardownAndDestroy } = core;
  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => core.get(pointer, call),
    list: (kind, call) => core.list(kind, call),
    async create(resource, call) {
      hardSignal.throwIfAborted();
      return wrote(await core.create(resource, call));
    },
    async update(resource, call) {
      hardSignal.throwIfAborted();
      return wrote(await core.update(resource, call));
    },
    async destroy(pointer, call) {
      hardSignal.throwIfAborted();
      await core.destroy(pointer, call);
      ended(pointer, 'gone', call?.uid);
    },
    watch: (pointer, call) => core.watch(pointer, call),
    watchKind: (kind, call) => core.watchKind(kind, call),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, call),
    watchKinds: (kinds, call) => core.watchKinds(kinds, call),
    ...(teardown && {
      async teardown(pointer, call) {
        hardSignal.throwIfAborted();
        const ready = await teardown.call(core, pointer, call);
        ended(pointer, 'tornDown');
        return ready;
      },
    }),
    ...(teardownAndDestroy && { teardownAndDestroy: (pointer, call) => teardownAndDestroy.call(core, pointer, call) }),
    ...optionalCalls(core),
  } satisfies CoreState;
}

/** The core, told with each call whose part it is. */
function withinSpan(core: CoreState, spanOf: () => Span): CoreState {
  const part = <Options extends CallOptions>(call: Options | undefined): Options => {
    const { context } = spanOf();
    return { ...(context && { span: context }), ...(call as Options) };
  };
  const { teardown, teardownAndDestroy } = core;
  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => core.get(pointer, part(call)),
    list: (kind, call) => core.list(kind, part(call)),
    create: (resource, call) => core.create(resource, part(call)),
    update: (resource, call) => core.update(resource, part(call)),
    destroy: (pointer, call) => core.destroy(pointer, part(call)),
    watch: (pointer, call) => core.watch(pointer, part(call)),
    watchKind: (kind, call) => core.watchKind(kind, part(call)),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, part(call)),
    watchKinds: (kinds, call) => core.watchKinds(kinds, part(call)),
    ...(teardown && { teardown: (pointer, call) => teardown.call(core, pointer, part(call)) }),
    ...(teardownAndDestroy && { teardownAndDestroy: (pointer, call) => teardownAndDestroy.call(core, pointer, part(call)) }),
    ...optionalCalls(core),
  } satisfies CoreState;
}
