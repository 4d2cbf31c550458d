import type { DefinitionRegistry, Pointer, Resource } from '../../resource/index.ts';
import { freezeSpec, isNotFoundError, pointerOf, SteadystateError, sameValue } from '../../resource/index.ts';
import type { ControllerContext } from '../../runtime/index.ts';
import { ownerConflict } from '../../state/index.ts';
import { kindOfType, typeOfKind } from '../define-workload.ts';
import { bearsMark, parentAnnotation, parentIdLabel } from '../identity.ts';
import type { ChildRef, Desired, Live, StorePort, WorkloadEvent, WorkloadKey, WorkloadStatus, WorkloadView } from '../port.ts';
import type { CompanionSpec } from './companion.ts';
import { generationDigest, readCompanion } from './companion.ts';
import { resourceReadiness } from './readiness.ts';

export interface EmbeddedPortOptions {
  /** What the controller may read and write. */
  readonly context: ControllerContext;
  /** The type of the workload's companion. */
  readonly statusType: string;
  /** Definitions of children and dependencies: for readiness. */
  readonly registry: DefinitionRegistry;
  /** The versions that this controller wrote last, by pointer: events of its own writes need no reconcile. */
  readonly ownVersions: Map<string, string>;
  readonly emit: (event: WorkloadEvent) => void;
}

interface Handle {
  readonly workload: Resource;
  readonly companion: Resource | undefined;
}

/** The engine's port on the embedded store, within one controller's view. */
export function embeddedPort(options: EmbeddedPortOptions): StorePort {
  const { context, registry, ownVersions } = options;

  const find = async (pointer: Pointer): Promise<Resource | undefined> => {
    try {
      return await context.get(pointer);
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

  const toLive = async (resource: Resource): Promise<Live> => {
    const definition = registry.get(resource.metadata.type);
    const companion = definition?.statusType === undefined ? undefined : await find(companionOf(definition.statusType, resource.metadata));
    return describe(resource, companion, resourceReadiness(definition, resource, companion));
  };
  /** The child as it is, if it is still this incarnation. */
  const incarnation = async (ref: ChildRef, uid: string): Promise<Resource | undefined> => {
    const found = await find(toPointer(ref));
    return found?.metadata.uid === uid ? found : undefined;
  };

  return {
    caps: { garbageCollector: false, ownerReferences: false, namespaces: false, events: false },
    owner: context.name,

    async workloads(kind, { namespace = 'default' }) {
      const { items } = await context.list({ namespace, type: typeOfKind(kind) });
      return items.map((item) => ({ ...kind, namespace, name: item.metadata.id }));
    },
    async workload(key) {
      const pointer = { namespace: key.namespace, type: typeOfKind(key), id: key.name };
      const workload = await find(pointer);
      if (workload === undefined) return undefined;
      return viewOf(key, { workload, companion: await find(companionOf(options.statusType, pointer)) });
    },
    async get(ref) {
      const found = await find(toPointer(ref));
      return found === undefined ? undefined : toLive(found);
    },
    async list(kind, { namespace, labels }) {
      const type = typeOfKind(kind);
      const terms = Object.entries(labels ?? {}).map(([key, value]) => ({ key, op: 'equal' as const, values: [value] }));
      const { items } = await context.list(
        { namespace: namespace ?? 'default', type },
        terms.length === 0 ? {} : { labelQueries: [{ terms }] },
      );
      return Promise.all(items.map(toLive));
    },
    diff: (desired, live) => (isAsDesired(desired, live) ? 'same' : 'differs'),

    async apply(desired, { live, signal }) {
      signal.throwIfAborted();
      const pointer = toPointer(desired.ref);
      const body = freezeSpec(desired.body, pointer);
      if (live === undefined) {
        const created = await context.create({
          metadata: { ...pointer, labels: desired.labels, annotations: desired.annotations },
          spec: body,
        });
        return { outcome: 'created', live: await toLive(wrote(created)) };
      }
      if (live.owner !== '' && live.owner !== context.name) throw ownerConflict(pointer, context.name, live.owner);
      const updated = await context.update(
        {
          metadata: {
            ...pointer,
            version: live.version,
            finalizers: live.finalizers,
            labels: desired.labels,
            annotations: desired.annotations,
          },
          spec: body,
        },
        { owner: live.owner },
      );
      if (updated.metadata.uid !== live.uid)
        throw new SteadystateError('Conflict', 'the child became another incarnation', { pointer, reason: 'incarnation' });
      return { outcome: 'changed', live: await toLive(wrote(updated)) };
    },
    async remove(ref, uid) {
      const found = await incarnation(ref, uid);
      if (found === undefined) return 'gone';
      const pointer = toPointer(ref);
      const { owner, phase, finalizers } = found.metadata;
      try {
        if (phase === 'running') {
          await context.teardown(pointer, { owner });
          return 'terminating';
        }
        if (finalizers.length > 0) return 'terminating';
        await context.destroy(pointer, { owner, uid });
      } catch (error) {
        if (!isNotFoundError(error)) throw error;
      }
      ownVersions.delete(pointerKey(pointer));
      return 'gone';
    },
    async release(ref, uid, { owner }) {
      const found = await incarnation(ref, uid);
      if (found === undefined || !bearsMark(describe(found, undefined, undefined), owner)) return;
      await context.updateWithConflicts(
        toPointer(ref),
        (draft) => {
          draft.labels.delete(parentIdLabel);
          draft.annotations.delete(parentAnnotation);
        },
        { owner: found.metadata.owner, expectedPhase: 'any' },
      );
    },
    async addFinalizer(view, name) {
      const { workload, companion } = view.handle as Handle;
      await context.addFinalizer(pointerOf(workload), name);
      const now = await find(pointerOf(workload));
      if (now === undefined || now.metadata.uid !== view.uid)
        throw new SteadystateError('Conflict', 'the workload became another incarnation', {
          pointer: pointerOf(workload),
          reason: 'incarnation',
        });
      ownVersions.set(pointerKey(workload.metadata), now.metadata.version);
      return viewOf(view.key, { workload: now, companion });
    },
    async removeFinalizer(view, name) {
      await context.removeFinalizer(pointerOf((view.handle as Handle).workload), name);
    },
    async writeStatus(view, next) {
      const { workload, companion } = view.handle as Handle;
      const spec = companionSpec(view, next, workload);
      if (companion !== undefined && sameValue(companion.spec, spec)) return view;
      const pointer = companionOf(options.statusType, workload.metadata);
      const written =
        companion === undefined
          ? await context.create({ metadata: pointer, spec })
          : await context.update({ metadata: { ...pointer, version: companion.metadata.version }, spec });
      return viewOf(view.key, { workload, companion: wrote(written) });
    },
    async removeStatus(view) {
      const companion = await find(companionOf(options.statusType, (view.handle as Handle).workload.metadata));
      if (companion === undefined) return;
      await context.destroy(pointerOf(companion), { owner: companion.metadata.owner, uid: companion.metadata.uid });
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
  return JSON.stringify([namespace, type, id]);
}

function toPointer(ref: ChildRef): Pointer {
  return { namespace: ref.namespace, type: typeOfKind(ref), id: ref.name };
}

function describe(resource: Resource, companion: Resource | undefined, ready: Live['ready']): Live {
  const { metadata, spec } = resource;
  return Object.freeze({
    ref: { ...kindOfType(metadata.type), version: '', namespace: metadata.namespace, name: metadata.id },
    uid: metadata.uid,
    version: metadata.version,
    generation: undefined,
    deleting: metadata.phase === 'tearingDown',
    finalizers: metadata.finalizers,
    labels: metadata.labels,
    annotations: metadata.annotations,
    owner: metadata.owner,
    body: spec,
    status: companion?.spec,
    ...(ready && { ready }),
  });
}

function viewOf(key: WorkloadKey, handle: Handle): WorkloadView {
  const { metadata, spec } = handle.workload;
  const companion = readCompanion(handle.companion, metadata.uid);
  const generation =
    companion === undefined
      ? 1
      : companion.specDigest === generationDigest(handle.workload)
        ? companion.generation
        : companion.generation + 1;
  return Object.freeze({
    key,
    uid: metadata.uid,
    version: metadata.version,
    generation,
    deleting: metadata.phase === 'tearingDown',
    finalizers: metadata.finalizers,
    labels: metadata.labels,
    annotations: metadata.annotations,
    spec,
    status: companion && statusOf(companion),
    handle,
  });
}

function statusOf({ generation: _generation, specDigest: _digest, workloadUid: _uid, ...status }: CompanionSpec): WorkloadStatus {
  return status;
}

function companionSpec(view: WorkloadView, next: WorkloadStatus, workload: Resource): CompanionSpec {
  return { ...next, generation: view.generation, specDigest: generationDigest(workload), workloadUid: view.uid };
}

/** The child is owned, so all of it is compared. */
function isAsDesired(desired: Desired, live: Live): boolean {
  return sameValue(live.labels, desired.labels) && sameValue(live.annotations, desired.annotations) && sameValue(live.body, desired.body);
}
