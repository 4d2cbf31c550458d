import type { Environment } from '../environment/index.ts';
import type { Kind, Pointer, Resource, ResourceInput } from '../resource/index.ts';
import { findError, isPhaseConflictError, SteadystateError } from '../resource/index.ts';
import { allowedNamespaces } from './allowed-namespaces.ts';
import type { CoreState } from './core-state.ts';
import type { EventSource } from './event-source.ts';
import { createAggregatedWatch, sourceOf } from './event-stream.ts';
import type { StateEvent } from './events.ts';
import { optionalCalls } from './optional-calls.ts';
import type { CallOptions, UpdateOptions } from './options.ts';
import { wrapCore } from './wrap-core.ts';

/** What a call wants to do. `update` covers finalizers too; `destroy` covers both teardown calls. */
export type AccessVerb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'destroy';

export interface Access {
  readonly namespace: string;
  readonly type: string;
  /** Absent for list and for watches of a kind. */
  readonly id?: string;
  readonly verb: AccessVerb;
}

/** Throws (or rejects) to deny; its error is the call's error. */
export type AccessRule = (access: Access) => void | Promise<void>;

/**
 * Asks a rule before every access; its error is the call's error. Both teardown calls ask for `destroy` once, whether the
 * store has them or not; an update that sets tearingDown asks for `update` and `destroy`.
 */
export function filter(core: CoreState, rule: AccessRule, options: { readonly environment: Environment }): CoreState {
  const ask = async ({ namespace, type, id }: Kind & { readonly id?: string }, verb: AccessVerb): Promise<void> =>
    rule({ namespace, type, verb, ...(id !== undefined && { id }) });
  const kindOf = ({ namespace, type }: Kind): Kind => ({ namespace, type });
  const { finalizerNotes, watchNamespaces } = core;
  // Below the rule: the steps of a teardown are not asked for one by one.
  const inner = wrapCore(core, options);
  return {
    get capabilities() {
      return core.capabilities;
    },
    async get(pointer, call) {
      await ask(pointer, 'get');
      return core.get(pointer, call);
    },
    async list(kind, call) {
      await ask(kindOf(kind), 'list');
      return core.list(kind, call);
    },
    async create(resource, call) {
      await ask(resource.metadata, 'create');
      return core.create(resource, call);
    },
    async update(resource, call) {
      await ask(resource.metadata, 'update');
      if (resource.metadata.phase !== 'tearingDown' || call?.expectedPhase === 'tearingDown') return core.update(resource, call);
      const denied = await deniedDestroy(resource.metadata, ask);
      if (denied === undefined) return core.update(resource, call);
      return updateTornDown(core, resource, call, denied);
    },
    async destroy(pointer, call) {
      await ask(pointer, 'destroy');
      return core.destroy(pointer, call);
    },
    async watch(pointer, call) {
      await ask(pointer, 'watch');
      return core.watch(pointer, call);
    },
    async watchKind(kind, call) {
      await ask(kindOf(kind), 'watch');
      return core.watchKind(kind, call);
    },
    async watchKindAggregated(kind, call) {
      await ask(kindOf(kind), 'watch');
      return core.watchKindAggregated(kind, call);
    },
    async watchKinds(kinds, call) {
      const allowed: Kind[] = [];
      const denied: StateEvent[] = [];
      for (const kind of kinds) {
        try {
          await ask(kindOf(kind), 'watch');
          allowed.push(kind);
        } catch (error) {
          const known =
            findError(error) ??
            new SteadystateError('Forbidden', `watching ${kind.type} in ${kind.namespace} was denied`, { cause: error });
          denied.push({ type: 'kindErrored', kind: kindOf(kind), error: known });
        }
      }
      const watch = await core.watchKinds(allowed, call);
      if (denied.length === 0) return watch;
      return createAggregatedWatch(startWith(denied, sourceOf(watch)), { environment: options.environment });
    },
    ...optionalCalls(core),
    ...(watchNamespaces && {
      async watchNamespaces(type, call) {
        const watch = await watchNamespaces.call(core, type, call);
        const isAllowed = (namespace: string): Promise<boolean> =>
          ask({ namespace, type }, 'watch').then(
            () => true,
            () => false,
          );
        return createAggregatedWatch(allowedNamespaces(watch, isAllowed), { environment: options.environment }) as typeof watch;
      },
    }),
    async teardown(pointer, call) {
      await ask(pointer, 'destroy');
      return inner.teardown(pointer, call);
    },
    async teardownAndDestroy(pointer, call) {
      await ask(pointer, 'destroy');
      return inner.teardownAndDestroy(pointer, call);
    },
    ...(finalizerNotes && {
      async finalizerNotes(pointer: Pointer, call?: CallOptions) {
        await ask(pointer, 'get');
        return finalizerNotes.call(core, pointer, call);
      },
    }),
  } satisfies CoreState;
}

async function deniedDestroy(
  pointer: Pointer,
  ask: (pointer: Pointer, verb: AccessVerb) => Promise<void>,
): Promise<{ readonly error: unknown } | undefined> {
  try {
    await ask(pointer, 'destroy');
    return undefined;
  } catch (error) {
    return { error };
  }
}

/**
 * Without the right to destroy, what is already tearing down may still be updated: the precondition is narrowed to
 * that phase, so that the write itself decides and no earlier look is needed.
 */
async function updateTornDown<Spec>(
  core: CoreState,
  resource: ResourceInput<Spec> | Resource<Spec>,
  call: UpdateOptions | undefined,
  denied: { readonly error: unknown },
): Promise<Resource<Spec>> {
  if (call?.expectedPhase !== 'any') throw denied.error;
  try {
    return await core.update(resource, { ...call, expectedPhase: 'tearingDown' });
  } catch (error) {
    throw isPhaseConflictError(error) ? denied.error : error;
  }
}

/** A source that gives `first` before all else. */
function startWith(first: readonly StateEvent[], source: EventSource): EventSource {
  let pending: readonly StateEvent[] = first;
  return {
    take(max) {
      if (pending.length === 0) return source.take(max);
      const taken = pending.slice(0, max);
      pending = pending.slice(max);
      return taken;
    },
    whenReady: (callback) => (pending.length > 0 ? callback() : source.whenReady(callback)),
    get ended() {
      return pending.length === 0 && source.ended;
    },
    close: () => source.close(),
  };
}
