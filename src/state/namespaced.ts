import type { Environment } from '../environment/index.ts';
import type { Kind } from '../resource/index.ts';
import { checkKind, makeResource } from '../resource/index.ts';
import type { Capabilities, CoreState } from './core-state.ts';
import { unsupported } from './errors.ts';
import type { State } from './state.ts';
import { wrapCore } from './wrap-core.ts';

export interface NamespacedOptions {
  readonly environment: Environment;
  /** What every one of the stores can. There is no revision over all of them, and so no watch over several namespaces. */
  readonly capabilities: Omit<Capabilities, 'globalRevision' | 'multiKindWatch'>;
}

/**
 * One store per namespace, built at the first access of any kind. Calls that come meanwhile wait for the same build; one
 * that failed is not kept, so that the next access tries again.
 */
export function namespaced(build: (namespace: string) => Promise<CoreState> | CoreState, options: NamespacedOptions): CoreState {
  const built = new Map<string, Promise<State>>();
  const capabilities: Capabilities = Object.freeze({ ...options.capabilities, globalRevision: false, multiKindWatch: false });

  const of = (kind: Kind): Promise<State> => {
    checkKind(kind);
    const { namespace } = kind;
    let store = built.get(namespace);
    if (store === undefined) {
      store = (async () => wrapCore(await build(namespace), { environment: options.environment }))();
      built.set(namespace, store);
      store.catch(() => built.delete(namespace));
    }
    return store;
  };

  return {
    capabilities,
    get: async (pointer, call) => (await of(pointer)).get(pointer, call),
    async list(kind, call) {
      // A revision would say nothing beside that of another namespace.
      const { items } = await (await of(kind)).list(kind, call);
      return Object.freeze({ items });
    },
    async create(input, call) {
      const resource = makeResource(input);
      return (await of(resource.metadata)).create(resource, call);
    },
    async update(input, call) {
      const resource = makeResource(input);
      return (await of(resource.metadata)).update(resource, call);
    },
    destroy: async (pointer, call) => (await of(pointer)).destroy(pointer, call),
    watch: async (pointer, call) => (await of(pointer)).watch(pointer, call),
    watchKind: async (kind, call) => (await of(kind)).watchKind(kind, call),
    watchKindAggregated: async (kind, call) => (await of(kind)).watchKindAggregated(kind, call),
    async watchKinds(kinds, call) {
      for (const kind of kinds) checkKind(kind);
      const [first] = kinds;
      if (first === undefined || kinds.some(({ namespace }) => namespace !== first.namespace)) {
        throw unsupported('kinds of several namespaces have no common order here; watch each namespace');
      }
      return (await of(first)).watchKinds(kinds, call);
    },
    async finalizerNotes(pointer, call) {
      const store = await of(pointer);
      if (store.finalizerNotes === undefined) throw unsupported('the store of this namespace remembers nothing of finalizers');
      return store.finalizerNotes(pointer, call);
    },
    teardown: async (pointer, call) => (await of(pointer)).teardown(pointer, call),
    teardownAndDestroy: async (pointer, call) => (await of(pointer)).teardownAndDestroy(pointer, call),
  };
}
