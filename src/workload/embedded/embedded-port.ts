import type { DefinitionRegistry, Pointer, Resource, ResourceInput } from '../../resource/index.ts';
import { freezeSpec, isNotFoundError, pointerOf, SteadystateError, sameValue, thisIncarnation } from '../../resource/index.ts';
import type { ControllerContext } from '../../runtime/index.ts';
import { incarnationConflict, ownerConflict } from '../../state/index.ts';
import { typeOfKind } from '../define-workload.ts';
import { bearsMark, parentAnnotation, parentIdLabel } from '../identity.ts';
import type { ChildRef, Desired, GroupKind, Live, PortCall, StorePort, WorkloadEvent } from '../port.ts';
import type { Handle } from './embedded-views.ts';
import { companionSpec, describe, viewOf } from './embedded-views.ts';
import { resourceReadiness } from './readiness.ts';

export interface EmbeddedPortOptions {
  /** What the controller may read and write. */
  readonly context: ControllerContext;
  /** The type of the workload's companion. */
  readonly statusType: string;
  /** Definitions of children, dependencies and the collection: for readiness. */
  readonly registry: DefinitionRegistry;
  /** The versions that this controller wrote last, by pointer: events of its own writes need no reconcile. */
  readonly ownVersions: Map<string, string>;
  /** Where the objects of a kind can be. @default the namespace `default` */
  readonly namespacesOf?: (kind: GroupKind) => readonly string[] | Promise<readonly string[]>;
  readonly emit: (event: WorkloadEvent) => void;
}

/** The engine's port on the embedded store, within one controller's view. */
export function embeddedPort(options: EmbeddedPortOptions): StorePort {
  const { context, registry, ownVersions, statusType, namespacesOf = () => ['default'] } = options;

  const find = async (pointer: Pointer, call?: Pick<PortCall, 'fresh'>): Promise<Resource | undefined> => {
    try {
      return await (call?.fresh === true ? (context.uncached ?? context) : context).get(pointer);
    } catch (error) {
      if (isNotFoundError(error)) return undefined;
      throw error;
    }
  };
  const wrote = (resource: Resource): Resource => {
    ownVersions.set(pointerKey(resource.metadata), resource.metadata.version);
    return resource;
  };
  const companionOf = (type: string, pointer: Pointer): Pointer => ({ namespace: pointer.namespace, type, id: pointer.id });

  const toLive = async (resource: Resource, call?: PortCall): Promise<Live> => {
    const definition = registry.get(resource.metadata.type);
    const companion =
      definition?.statusType === undefined ? undefined : await find(companionOf(definition.statusType, resource.metadata), call);
    return describe(resource, companion, resourceReadiness(definition, resource, companion));
  };
  /** Before a write, never from a cache: what is missing there may be in the store. */
  const fresh = { fresh: true };
  /** The child as it is, if it is still this incarnation. */
  const incarnation = async (ref: ChildRef, uid: string): Promise<Resource | undefined> => {
    const found = await find(toPointer(ref), fresh);
    return found?.metadata.uid === uid ? found : undefined;
  };
  /** The version as precondition, so that no other incarnation is hit. */
  const updateExactly = (resource: Resource, change: Partial<ResourceInput['metadata']>): Promise<Resource> => {
    const { namespace, type, id, version, phase, owner, finalizers, labels, annotations } = resource.metadata;
    const metadata = { namespace, type, id, version, phase, finalizers, labels, annotations, ...change };
    return context.update({ metadata, spec: resource.spec }, { owner, expectedPhase: phase });
  };

  return {
    caps: { garbageCollector: false, ownerReferences: false, namespaces: false, events: true },
    owner: context.name,

    async workloads(kind, { namespace }) {
      const lists = (namespace === undefined ? await namespacesOf(kind) : [namespace]).map((place) =>
        context.list({ namespace: place, type: typeOfKind(kind) }),
      );
      const items = (await Promise.all(lists)).flatMap((list) => list.items);
      return items.map(({ metadata }) => ({ ...kind, namespace: metadata.namespace, name: metadata.id }));
    },
    async workload(key, call) {
      const pointer = { namespace: key.namespace, type: typeOfKind(key), id: key.name };
      const workload = await find(pointer, call);
      if (workload === undefined) return undefined;
      return viewOf(key, { workload, companion: await find(companionOf(statusType, pointer), call) });
    },
    async get(ref, call) {
      const found = await find(toPointer(ref), call);
      return found === undefined ? undefined : toLive(found, call);
    },
    async list(kind, { namespace, labels, ...call }) {
      const reader = call.fresh === true ? (context.uncached ?? context) : context;
      const terms = Object.entries(labels ?? {}).map(([key, value]) => ({ key, op: 'equal' as const, values: [value] }));
      const query = terms.length === 0 ? {} : { labelQueries: [{ terms }] };
      const places = namespace === undefined ? await namespacesOf(kind) : [namespace];
      const lists = await Promise.all(places.map((place) => reader.list({ namespace: place, type: typeOfKind(kind) }, query)));
      return Promise.all(lists.flatMap(({ items }) => items.map((item) => toLive(item, call))));
    },
    diff: (desired, live) => (isAsDesired(desired, live) ? 'same' : 'differs'),

    async apply(desired, { live, signal }) {
      signal.throwIfAborted();
      const pointer = toPointer(desired.ref);
      const { labels, annotations } = desired;
      const spec = freezeSpec(desired.body, pointer);
      if (live === undefined) {
        const created = await context.create({ metadata: { ...pointer, labels, annotations }, spec });
        return { outcome: 'created', live: await toLive(wrote(created)) };
      }
      if (live.owner !== '' && live.owner !== context.name) throw ownerConflict(pointer, context.name, live.owner);
      const { version, finalizers } = live;
      const metadata = { ...pointer, version, finalizers, labels, annotations };
      const updated = await context.update({ metadata, spec }, { owner: live.owner });
      // The version is the precondition, so this is another incarnation only on a store that reuses versions.
      if (updated.metadata.uid !== live.uid) throw incarnationConflict(pointer, live.uid, updated.metadata.uid);
      return { outcome: 'changed', live: await toLive(wrote(updated)) };
    },
    async remove(ref, uid, { owner: parent }) {
      const found = await incarnation(ref, uid);
      if (found === undefined || (parent !== undefined && !bearsMark(found.metadata, parent))) return 'gone';
      const pointer = toPointer(ref);
      const { owner, phase, finalizers } = found.metadata;
      try {
        if (phase === 'running') {
          await updateExactly(found, { phase: 'tearingDown' });
          return 'terminating';
        }
        if (finalizers.length > 0) return 'terminating';
        await context.destroy(pointer, { owner, ...thisIncarnation({ uid }) });
      } catch (error) {
        if (!isNotFoundError(error)) throw error;
      }
      ownVersions.delete(pointerKey(pointer));
      return 'gone';
    },
    async release(ref, uid, { owner }) {
      const found = await incarnation(ref, uid);
      if (found === undefined || !bearsMark(found.metadata, owner)) return;
      const { [parentIdLabel]: _id, ...labels } = found.metadata.labels;
      const { [parentAnnotation]: _mark, ...annotations } = found.metadata.annotations;
      await updateExactly(found, { labels, annotations });
    },
    async addFinalizer(view, name) {
      const { workload, companion } = view.handle as Handle;
      const pointer = pointerOf(workload);
      await context.addFinalizer(pointer, name);
      const now = await find(pointer, fresh);
      if (now === undefined || now.metadata.uid !== view.uid) throw incarnationConflict(pointer, view.uid, now?.metadata.uid ?? 'none');
      return viewOf(view.key, { workload: now, companion });
    },
    async removeFinalizer(view, name) {
      await context.removeFinalizer(pointerOf((view.handle as Handle).workload), name);
    },
    async writeStatus(view, next) {
      const { workload, companion } = view.handle as Handle;
      const spec = companionSpec(view, next, workload);
      if (companion !== undefined && sameValue(companion.spec, spec)) return view;
      const pointer = companionOf(statusType, workload.metadata);
      const written =
        companion === undefined
          ? await context.create({ metadata: pointer, spec })
          : await context.update({ metadata: { ...pointer, version: companion.metadata.version }, spec });
      return viewOf(view.key, { workload, companion: wrote(written) });
    },
    async removeStatus(view) {
      const companion = await find(companionOf(statusType, (view.handle as Handle).workload.metadata), fresh);
      if (companion === undefined) return;
      const { owner, uid } = companion.metadata;
      try {
        await context.destroy(pointerOf(companion), { owner, uid });
      } catch (error) {
        if (!isNotFoundError(error)) throw error;
      }
      ownVersions.delete(pointerKey(companion.metadata));
    },
    namespaceState: async () => 'active',
    async watch() {
      throw new SteadystateError('Unsupported', 'on the embedded store the controller runtime watches');
    },
    emit: options.emit,
  };
}

export function pointerKey({ namespace, type, id }: Pointer): string {
  return `${namespace}\u0000${type}\u0000${id}`;
}

function toPointer(ref: ChildRef): Pointer {
  return { namespace: ref.namespace, type: typeOfKind(ref), id: ref.name };
}

/** The child is owned, so all of it is compared. */
function isAsDesired(desired: Desired, live: Live): boolean {
  return sameValue(live.labels, desired.labels) && sameValue(live.annotations, desired.annotations) && sameValue(live.body, desired.body);
}
