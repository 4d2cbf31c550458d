import type { Environment } from '../environment/index.ts';
import type { Pointer, Resource, ResourceInput, ResourcePhase } from '../resource/index.ts';
import {
  checkPointer,
  finishDraft,
  invalid,
  isAlreadyExistsError,
  isIncarnationConflictError,
  isNotFoundError,
  isOwnerConflictError,
  isPendingFinalizersError,
  isPhaseConflictError,
  isVersionConflictError,
  makeResource,
  openDraft,
} from '../resource/index.ts';
import type { CoreState, TeardownOptions } from './core-state.ts';
import { closed, gone, incarnationConflict, phaseConflict } from './errors.ts';
import { follow } from './follow.ts';
import { optionalCalls } from './optional-calls.ts';
import type { CallOptions, UpdateOptions } from './options.ts';
import type { State, Updater } from './state.ts';
import { watchFor } from './watch-for.ts';

/** Builds the helpers of `State` on a backend (or on a wrapper of one). */
export function wrapCore(core: CoreState, options: { readonly environment: Environment }): State {
  const { environment } = options;
  const pauses = (): Pauses => ({ environment, lost: 0 });
  const state: State = {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => core.get(pointer, call),
    list: (kind, call) => core.list(kind, call),
    create: (resource, call) => core.create(resource, call),
    update: (resource, call) => core.update(resource, call),
    destroy: (pointer, call) => core.destroy(pointer, call),
    watch: (pointer, call) => core.watch(pointer, call),
    watchKind: (kind, call) => core.watchKind(kind, call),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, call),
    watchKinds: (kinds, call) => core.watchKinds(kinds, call),
    ...optionalCalls(core),

    updateWithConflicts: (pointer, updater, call = {}) => edit(core, pauses(), pointer, updater, call, undefined),
    watchFor: (pointer, condition, call) => watchFor(core, pointer, condition, call),
    teardown: (pointer, call) => (core.teardown ? core.teardown(pointer, call) : teardown(core, pauses(), pointer, call)),
    teardownAndDestroy: (pointer, call) =>
      core.teardownAndDestroy ? core.teardownAndDestroy(pointer, call) : teardownAndDestroy(core, pauses(), pointer, call),

    async addFinalizer(pointer, ...finalizers) {
      await edit(
        core,
        pauses(),
        pointer,
        (draft) => finalizers.forEach((name) => draft.finalizers.add(name)),
        { expectedPhase: 'any' },
        ownerOf,
      );
    },
    async removeFinalizer(pointer, ...finalizers) {
      await edit(
        core,
        pauses(),
        pointer,
        (draft) => finalizers.forEach((name) => draft.finalizers.remove(name)),
        { expectedPhase: 'any' },
        ownerOf,
      );
    },
    abortSignalOnTeardown: (pointer, call) => abortSignalOnTeardown(core, pointer, call?.signal),
    async modify(empty, updater, call) {
      await modify(core, pauses(), empty, updater, call);
    },
    modifyWithResult: (empty, updater, call) => modify(core, pauses(), empty, updater, call),
    follow: (kind, call) => follow(core, environment, kind, call),
  };
  return state;
}

const ownerOf = (resource: Resource): string => resource.metadata.owner;

/** Counts the races that one call lost. */
interface Pauses {
  readonly environment: Environment;
  lost: number;
}

/** Tries per macrotask: a store in the same process answers in microtasks, and retries must not starve timers and input. */
const triesPerBreath = 8;

async function beforeRetry(pauses: Pauses): Promise<void> {
  if (++pauses.lost % triesPerBreath === 0) await pauses.environment.breathe();
}

/**
 * Reads, edits, writes; again on a version conflict only. With `ownerFor` the owner is whoever owns what was read, so that a
 * re-creation by another owner meanwhile is a lost race too.
 */
async function edit<Spec>(
  core: CoreState,
  pauses: Pauses,
  pointer: Pointer<Spec>,
  updater: Updater<Spec>,
  options: Omit<UpdateOptions, 'currentVersion'>,
  ownerFor: ((current: Resource) => string) | undefined,
): Promise<Resource<Spec>> {
  let refused: string | undefined;
  for (;;) {
    options.signal?.throwIfAborted();
    const current = await core.get(pointer, callOf(options));
    const { version } = current.metadata;
    const edited = await editOnce(current, updater, options.expectedPhase ?? 'running');
    if (edited === current) return current;
    try {
      return await core.update(edited, { ...options, ...(ownerFor && { owner: ownerFor(current) }), currentVersion: version });
    } catch (error) {
      const ownerMoved = ownerFor !== undefined && isOwnerConflictError(error) && refused !== version;
      if (!ownerMoved && !isVersionConflictError(error)) throw error;
      refused = version;
    }
    await beforeRetry(pauses);
  }
}

/** The edited resource; the same object when nothing changed. The phase is checked even then. */
async function editOnce<Spec>(
  current: Resource<Spec>,
  updater: Updater<Spec>,
  expectedPhase: ResourcePhase | 'any',
): Promise<Resource<Spec>> {
  const { phase } = current.metadata;
  if (expectedPhase !== 'any' && phase !== expectedPhase) throw phaseConflict(current.metadata, expectedPhase, phase);
  const draft = openDraft(current);
  await updater(draft);
  return finishDraft(draft);
}

/** What the steps of a helper take over from its own call. */
function callOf({ signal, span }: CallOptions): CallOptions {
  return { ...(signal && { signal }), ...(span && { span }) };
}

async function teardown(core: CoreState, pauses: Pauses, pointer: Pointer, { uid, ...options }: TeardownOptions = {}): Promise<boolean> {
  for (;;) {
    options.signal?.throwIfAborted();
    const current = await core.get(pointer, callOf(options));
    const { metadata } = current;
    if (uid !== undefined && metadata.uid !== uid) throw incarnationConflict(pointer, uid, metadata.uid);
    if (metadata.phase === 'tearingDown') return metadata.finalizers.length === 0;
    const draft = openDraft(current);
    draft.phase = 'tearingDown';
    try {
      const written = await core.update(finishDraft(draft), { ...options, currentVersion: metadata.version });
      return written.metadata.finalizers.length === 0;
    } catch (error) {
      // Another caller tore it down or changed it meanwhile: look again.
      if (!isVersionConflictError(error) && !isPhaseConflictError(error)) throw error;
    }
    await beforeRetry(pauses);
  }
}

async function teardownAndDestroy(core: CoreState, pauses: Pauses, pointer: Pointer, options: TeardownOptions = {}): Promise<void> {
  const { uid } = (await core.get(pointer, callOf(options))).metadata;
  if (options.uid !== undefined && options.uid !== uid) throw incarnationConflict(pointer, options.uid, uid);
  const ours = core.capabilities.incarnations ? { uid } : {};
  try {
    if (core.teardown) await core.teardown(pointer, { ...options, ...ours });
    else await teardown(core, pauses, pointer, { ...options, ...ours });
  } catch (error) {
    // Somebody destroyed it since the look; what was made in its place is another's.
    if (isNotFoundError(error) || isIncarnationConflictError(error)) return;
    throw error;
  }
  const watch = await core.watch(pointer, callOf(options));
  for await (const event of watch) {
    if (event.type === 'errored') throw event.error;
    if (event.type === 'destroyed') return;
    if (event.type !== 'created' && event.type !== 'updated') continue;
    const { metadata } = event.resource;
    if (core.capabilities.incarnations && metadata.uid !== uid) return;
    if (metadata.finalizers.length > 0) continue;
    try {
      return await core.destroy(pointer, { ...options, ...ours });
    } catch (error) {
      // Somebody destroyed it, or added a finalizer meanwhile: the next event tells.
      if (isNotFoundError(error) || isIncarnationConflictError(error)) return;
      if (!isPendingFinalizersError(error)) throw error;
    }
  }
  options.signal?.throwIfAborted();
  throw closed(`the watch of ${pointer.type}/${pointer.namespace}/${pointer.id} ended before it could be destroyed: the store was closed`);
}

async function abortSignalOnTeardown(core: CoreState, pointer: Pointer, signal: AbortSignal): Promise<AbortSignal> {
  checkPointer(pointer);
  // Without one the watch would have no end.
  if (typeof signal?.aborted !== 'boolean')
    throw invalid([{ path: 'signal', message: 'expected an AbortSignal that ends the watch' }], pointer);
  const controller = new AbortController();
  const watch = await core.watch(pointer, { signal });
  let uid: string | undefined;
  const end = (reason: unknown): void => {
    controller.abort(reason);
    void watch[Symbol.asyncDispose]();
  };
  void watch
    .drain((batch) => {
      for (const event of batch) {
        if (controller.signal.aborted) return;
        if (event.type === 'errored') end(event.error);
        else if (event.type === 'destroyed') end(gone(pointer, 'is gone'));
        else if (event.type === 'created' || event.type === 'updated') {
          const { metadata } = event.resource;
          uid ??= metadata.uid;
          // Destroy and create can be coalesced into one step, so the incarnation is compared.
          if (metadata.uid !== uid) end(gone(pointer, 'is another incarnation now'));
          else if (metadata.phase === 'tearingDown') end(gone(pointer, 'is being torn down'));
        }
      }
    })
    .then(
      () => controller.abort(signal.aborted ? signal.reason : closed('the store was closed')),
      (error: unknown) => controller.abort(error),
    );
  return controller.signal;
}

async function modify<Spec>(
  core: CoreState,
  pauses: Pauses,
  empty: ResourceInput<Spec> | Resource<Spec>,
  updater: Updater<Spec>,
  options: Omit<UpdateOptions, 'currentVersion'> = {},
): Promise<Resource<Spec>> {
  const fresh = makeResource(empty);
  const owner = options.owner;
  for (;;) {
    options.signal?.throwIfAborted();
    const current = await findOrUndefined(core, fresh.metadata as Pointer<Spec>, options);
    // The updater runs outside the try: its own errors come back as they are, also when they look like a lost race.
    const edited = await editOnce(current ?? fresh, updater, current === undefined ? 'any' : (options.expectedPhase ?? 'running'));
    if (edited === current) return current;
    try {
      if (current === undefined) return await core.create(edited, { ...callOf(options), ...(owner !== undefined && { owner }) });
      return await core.update(edited, { ...options, currentVersion: current.metadata.version });
    } catch (error) {
      const lostRace = current === undefined ? isAlreadyExistsError(error) : isVersionConflictError(error) || isNotFoundError(error);
      if (!lostRace) throw error;
    }
    await beforeRetry(pauses);
  }
}

async function findOrUndefined<Spec>(core: CoreState, pointer: Pointer<Spec>, options: CallOptions): Promise<Resource<Spec> | undefined> {
  try {
    return await core.get(pointer, callOf(options));
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
