import type { Environment } from '../../environment/index.ts';
import type { Metadata, Pointer, Resource, ResourceInput } from '../../resource/index.ts';
import { isVersionConflictError } from '../../resource/index.ts';
import type { AggregatedWatch, CoreState, StateEvent, UpdateOptions, Watch, WatchKindOptions } from '../../state/index.ts';
import { createAggregatedWatch, createWatch, mapSource, optionalCalls, sourceOf } from '../../state/index.ts';

/** Breaks one promise of a correct store, to show that the suite sees it. */
export type Fault = (core: CoreState, environment: Environment) => CoreState;

type EventMap = (batch: readonly StateEvent[]) => readonly StateEvent[];

/** A store that passes every call on, but for what is given. */
export function over(core: CoreState, changed: Partial<CoreState>): CoreState {
  return {
    capabilities: core.capabilities,
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
    ...changed,
  };
}

/** A store whose watches give other events; `makeMap` is called once per watch. */
export function withEvents(
  core: CoreState,
  environment: Environment,
  makeMap: (options: WatchKindOptions, about: 'one' | 'kind') => EventMap,
  changeOptions: (options: WatchKindOptions) => WatchKindOptions = (options) => options,
): CoreState {
  const single = (watch: Watch, options: WatchKindOptions, about: 'one' | 'kind') =>
    createWatch(mapSource(sourceOf(watch), makeMap(options, about)), { environment, signal: options.signal });
  const batches = (watch: AggregatedWatch, options: WatchKindOptions) =>
    createAggregatedWatch(mapSource(sourceOf(watch), makeMap(options, 'kind')), { environment, signal: options.signal });
  return over(core, {
    watch: async (pointer, options = {}) => single((await core.watch(pointer, changeOptions(options))) as Watch, options, 'one') as never,
    watchKind: async (kind, options = {}) =>
      single((await core.watchKind(kind, changeOptions(options))) as Watch, options, 'kind') as never,
    watchKindAggregated: async (kind, options = {}) =>
      batches((await core.watchKindAggregated(kind, changeOptions(options))) as AggregatedWatch, options) as never,
    watchKinds: async (kinds, options = {}) => batches(await core.watchKinds(kinds, changeOptions(options)), options),
  });
}

/** Changes each event alone; `undefined` drops it. */
export function eachEvent(change: (event: StateEvent, index: number) => StateEvent | undefined): () => EventMap {
  return () => {
    let index = 0;
    return (batch) => batch.map((event) => change(event, index++)).filter((event) => event !== undefined);
  };
}

/** Reads what is stored, `undefined` when nothing is. */
async function find(core: CoreState, pointer: Pointer): Promise<Resource | undefined> {
  return core.get(pointer).catch(() => undefined);
}

function withMetadata<Spec>(resource: Resource<Spec>, changed: Partial<Metadata>): Resource<Spec> {
  const { spec } = resource;
  return Object.freeze({ metadata: Object.freeze({ ...resource.metadata, ...changed }), spec });
}

/** Faults of reads and writes. */
export const callFaults: Readonly<Record<string, Fault>> = {
  'a get answers the value before': (core) => {
    const previous = new Map<string, Resource>();
    return over(core, {
      async update(resource, call) {
        previous.set(resource.metadata.id, await core.get(resource.metadata as Pointer));
        return core.update(resource, call);
      },
      async get(pointer, call) {
        const stale = previous.get(pointer.id);
        previous.delete(pointer.id);
        const found = await core.get(pointer, call);
        return (stale ?? found) as typeof found;
      },
    });
  },
  'an update does not check the owner': (core) =>
    over(core, {
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        const { spec } = resource;
        return core.update({ metadata: { ...resource.metadata, owner: '' }, spec } as typeof resource, {
          ...call,
          owner: stored?.metadata.owner ?? '',
        });
      },
    }),
  'a destroy does not check the owner': (core) =>
    over(core, {
      async destroy(pointer, call) {
        const stored = await find(core, pointer);
        return core.destroy(pointer, { ...call, owner: stored?.metadata.owner ?? '' });
      },
    }),
  'a create takes the owner from the metadata': (core) =>
    over(core, { create: (resource, call) => core.create(resource, { ...call, owner: resource.metadata.owner ?? call?.owner ?? '' }) }),
  'a create overwrites what is there': (core) =>
    over(core, {
      async create(resource, call) {
        const stored = await find(core, resource.metadata);
        if (stored === undefined) return core.create(resource, call);
        return core.update(resource, { currentVersion: stored.metadata.version, owner: stored.metadata.owner, expectedPhase: 'any' });
      },
    }),
  'an update does not check the version': (core) =>
    over(core, {
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        return core.update(resource, { ...call, ...(stored && { currentVersion: stored.metadata.version }) });
      },
    }),
  'a second racing update wins too': (core) =>
    over(core, {
      async update(resource: ResourceInput | Resource, call?: UpdateOptions) {
        const before = await find(core, resource.metadata);
        const fresh = (call?.currentVersion ?? resource.metadata.version) === before?.metadata.version;
        try {
          return await core.update(resource, call);
        } catch (error) {
          if (!fresh || !isVersionConflictError(error)) throw error;
          const now = await core.get(resource.metadata as Pointer);
          return await core.update(resource, { ...call, currentVersion: now.metadata.version });
        }
      },
    } as Partial<CoreState>),
  'an update does not check the phase': (core) =>
    over(core, { update: (resource, call) => core.update(resource, { ...call, expectedPhase: 'any' }) }),
  'a phase goes back': (core) => {
    const back = new Set<string>();
    const seen = <Spec>(resource: Resource<Spec>): Resource<Spec> =>
      back.has(resource.metadata.version) ? withMetadata(resource, { phase: 'running' }) : resource;
    return over(core, {
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        if (stored?.metadata.phase !== 'tearingDown' || resource.metadata.phase !== 'running') return core.update(resource, call);
        const { spec } = resource;
        const written = await core.update({ metadata: { ...resource.metadata, phase: 'tearingDown' }, spec } as typeof resource, call);
        back.add(written.metadata.version);
        return seen(written);
      },
      get: async (pointer, call) => seen(await core.get(pointer, call)),
    });
  },
  'an update keeps the finalizers of before': (core) =>
    over(core, {
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        const { spec } = resource;
        return core.update(
          { metadata: { ...resource.metadata, finalizers: stored?.metadata.finalizers ?? [] }, spec } as typeof resource,
          call,
        );
      },
    }),
  'an update without a change writes nothing': (core) =>
    over(core, {
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        const unchanged = stored !== undefined && stored.spec === resource.spec && stored.metadata.version === resource.metadata.version;
        return unchanged ? (stored as Resource<never>) : core.update(resource, call);
      },
    }),
  'created does not survive an update': (core) =>
    over(core, {
      async update(resource, call) {
        const written = await core.update(resource, call);
        return withMetadata(written, { created: '2030-01-01T00:00:00Z' });
      },
    }),
  'a destroy goes on despite finalizers': (core) =>
    over(core, {
      async destroy(pointer, call) {
        const stored = await find(core, pointer);
        if (stored !== undefined && stored.metadata.finalizers.length > 0) {
          const { metadata, spec } = stored;
          await core.update({ metadata: { ...metadata, finalizers: [] }, spec }, { owner: metadata.owner, expectedPhase: 'any' });
        }
        return core.destroy(pointer, call);
      },
    }),
  'a destroy does not look at the incarnation': (core) =>
    over(core, {
      destroy: (pointer, { uid: _uid, ...call } = {}) => core.destroy(pointer, call),
    }),
  'a destroy of nothing succeeds': (core) =>
    over(core, { destroy: async (pointer, call) => ((await find(core, pointer)) === undefined ? undefined : core.destroy(pointer, call)) }),
  'a version is used again': (core, environment) => {
    const outward = new Map<string, string>();
    const show = <Spec>(resource: Resource<Spec>): Resource<Spec> =>
      withMetadata(resource, { version: outward.get(resource.metadata.version) ?? resource.metadata.version });
    const shown = withEvents(
      core,
      environment,
      eachEvent(
        (event) =>
          ('resource' in event && event.resource.spec !== undefined
            ? Object.freeze({ ...event, resource: show(event.resource as Resource) })
            : event) as StateEvent,
      ),
    );
    return over(shown, {
      get: async (pointer, call) => show(await core.get(pointer, call)),
      list: async (kind, call) => {
        const list = await core.list(kind, call);
        return Object.freeze({ ...list, items: Object.freeze(list.items.map(show)) });
      },
      async create(resource, call) {
        const written = await core.create(resource, call);
        outward.set(written.metadata.version, '1');
        return show(written);
      },
      async update(resource, call) {
        const stored = await find(core, resource.metadata);
        const asked = call?.currentVersion ?? resource.metadata.version;
        const current = stored && (outward.get(stored.metadata.version) ?? '');
        const written = await core.update(resource, {
          ...call,
          currentVersion: asked === current ? (stored?.metadata.version ?? '0') : '0',
        });
        outward.set(written.metadata.version, String(Number(current) + 1));
        return show(written);
      },
    });
  },
  'a list is no snapshot': (core, environment) =>
    over(core, {
      async list(kind, call) {
        const first = await core.list(kind, call);
        await environment.breathe();
        const later = await core.list(kind, call);
        const fresh = new Map(later.items.map((item) => [item.metadata.id, item]));
        // The second half of the old list is shown as it is now.
        const items = first.items.map((item, index) => (index < first.items.length / 2 ? item : (fresh.get(item.metadata.id) ?? item)));
        return Object.freeze({ ...first, items: Object.freeze(items) });
      },
    }),
  'a list is ordered by UTF-16 units': (core) =>
    over(core, {
      async list(kind, call) {
        const list = await core.list(kind, call);
        const items = list.items.toSorted((left, right) => (left.metadata.id < right.metadata.id ? -1 : 1));
        return Object.freeze({ ...list, items: Object.freeze(items) });
      },
    }),
  'a list is not filtered': (core) => over(core, { list: (kind, { labelQueries: _labels, ...call } = {}) => core.list(kind, call) }),
  'an error has no pointer': (core) =>
    over(core, {
      get: (pointer, call) =>
        core.get(pointer, call).catch((error: { code?: string }) => {
          throw Object.assign(new Error('lost'), { name: 'SteadystateError', code: error.code });
        }),
    }),
  'a finalizer is as old as the last write': (core) =>
    over(core, {
      async finalizerNotes(pointer) {
        const { updated, finalizers } = (await core.get(pointer)).metadata;
        return finalizers.map((finalizer) => ({ finalizer, since: updated, actor: '' }));
      },
    }),
  'what is answered can be changed': (core) =>
    over(core, {
      async get(pointer, call) {
        const { metadata, spec } = await core.get(pointer, call);
        return { metadata: { ...metadata }, spec };
      },
    }),
};
