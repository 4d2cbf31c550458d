import type { Environment } from '../../environment/index.ts';
import type { Pointer } from '../../resource/index.ts';
import { DefinitionRegistry, isNotFoundError, pointerOf } from '../../resource/index.ts';
import type { ControllerContext, Input, MappedInput, QueueController } from '../../runtime/index.ts';
import { requeueError } from '../../runtime/index.ts';
import type { WorkloadDefinition } from '../define-workload.ts';
import { kindOfType, typeOfKind } from '../define-workload.ts';
import type { EngineResult } from '../engine.ts';
import { WorkloadEngine } from '../engine.ts';
import { bearsMark, isParent, parentId, parentIdLabel, readParent } from '../identity.ts';
import type { StorePort, WorkloadEvent, WorkloadKey } from '../port.ts';
import { embeddedPort, pointerKey } from './embedded-port.ts';

export interface EmbeddedControllerOptions {
  readonly environment: Environment;
  /** The controller's name, and so the owner of all children. @default `<Kind>-reconciler` */
  readonly name?: string;
  /** Namespaces that are watched. @default the definition's default namespace */
  readonly namespaces?: readonly string[];
  /** @default 1 */
  readonly concurrency?: number;
  /** Told of what happened, beside the log. */
  readonly onEvent?: (event: WorkloadEvent) => void;
}

/** Changes of children wait this many times as long as the last reconcile took, so that most of the time is left to others … */
const restFactor = 3;
/** … but never longer than this, milliseconds. */
const maxRestMs = 1_000;

/** The controller that keeps all workloads of one kind on the embedded store. Register it on a runtime. */
export function embeddedWorkloadController<Spec, Input_>(
  definition: WorkloadDefinition<Spec, Input_>,
  options: EmbeddedControllerOptions,
): QueueController {
  const { environment } = options;
  const engine = new WorkloadEngine(definition, environment);
  const name = options.name ?? `${definition.kind.kind}-reconciler`;
  const namespaces = options.namespaces ?? [definition.definition.defaultNamespace];
  const registry = new DefinitionRegistry([...definition.children, ...(definition.dependencyKinds ?? [])]);
  const ownVersions = new Map<string, string>();
  /** How long the last reconcile of each workload took, milliseconds, on the monotonic clock. */
  const durations = new Map<string, number>();
  const workloadType = definition.definition.type;
  const childTypes = new Set(definition.children.map((child) => child.type));
  const companionTypes = new Map(
    [...registry].filter((child) => child.statusType !== undefined).map((child) => [child.statusType as string, child.type]),
  );
  const dependencyTypes = new Set((definition.dependencyKinds ?? []).map((kind) => kind.type));

  const portFor = (context: ControllerContext): StorePort =>
    embeddedPort({
      context,
      statusType: definition.statusType,
      registry,
      ownVersions,
      emit: (event) => {
        context.log.log(event.type === 'Warning' ? 'warn' : 'info', `${event.reason}: ${event.note}`, {
          workload: `${event.regarding.namespace}/${event.regarding.name}`,
        });
        options.onEvent?.(event);
      },
    });

  const keyOf = ({ namespace, id }: Pointer): WorkloadKey => ({ ...definition.kind, namespace, name: id });

  return {
    name,
    concurrency: options.concurrency ?? 1,
    inputs: inputsOf(namespaces, workloadType, definition.statusType, [...childTypes, ...companionTypes.keys(), ...dependencyTypes]),
    outputs: [
      ...[...childTypes].map((type) => ({ type, kind: 'shared' as const })),
      { type: definition.statusType, kind: 'exclusive' as const },
    ],

    async reconcile(context, { pointer }) {
      const key = keyOf(pointer);
      const port = portFor(context);
      const started = environment.elapsed();
      const result = await engine.reconcile(key, port, context.log, context.signal);
      durations.set(pointerKey(pointer), environment.elapsed() - started);
      if (result.kind === 'none' && !(await exists(context, pointer))) {
        durations.delete(pointerKey(pointer));
        await cleanUp(context, port, key, [...childTypes], definition.statusType);
      }
      return answer(result);
    },

    async mapInput(context, input) {
      return mapChange(context, input);
    },

    // A reconcile looks at all children, so one per child's change would cost their square.
    mappedDelayMs: (pointer) => Math.min((durations.get(pointerKey(pointer)) ?? 0) * restFactor, maxRestMs),
  };

  async function mapChange(context: ControllerContext, { metadata, destroyed }: MappedInput): Promise<readonly Pointer[]> {
    const own = ownVersions.get(pointerKey(metadata));
    if (!destroyed && own === metadata.version) return [];
    if (destroyed) ownVersions.delete(pointerKey(metadata));
    const { type, namespace, id } = metadata;
    // A companion of ours that somebody else changed or removed, or one that outlived its workload.
    if (type === definition.statusType) return [{ namespace, type: workloadType, id }];
    const parents: Pointer[] = [];
    if (childTypes.has(type)) parents.push(...parentOf(metadata.annotations));
    const childType = companionTypes.get(type);
    const changed = childType === undefined ? undefined : { namespace, type: childType, id };
    if (changed !== undefined && childTypes.has(changed.type)) {
      try {
        parents.push(...parentOf((await context.get(changed)).metadata.annotations));
      } catch (error) {
        if (!isNotFoundError(error)) throw error;
      }
    }
    if (dependencyTypes.has(type) || (changed !== undefined && dependencyTypes.has(changed.type))) {
      for (const watched of namespaces) {
        const { items } = await context.list({ namespace: watched, type: workloadType });
        parents.push(...items.map(pointerOf));
      }
    }
    return parents;
  }

  function parentOf(annotations: Readonly<Record<string, string>>): readonly Pointer[] {
    const mark = readParent({ annotations });
    if (mark === undefined || typeOfKind(mark) !== workloadType || !namespaces.includes(mark.namespace)) return [];
    return [{ namespace: mark.namespace, type: workloadType, id: mark.name }];
  }
}

function inputsOf(namespaces: readonly string[], workloadType: string, statusType: string, mapped: readonly string[]): readonly Input[] {
  return namespaces.flatMap((namespace): Input[] => [
    { namespace, type: workloadType, kind: 'primary' },
    ...[...new Set([statusType, ...mapped])].map((type): Input => ({ namespace, type, kind: 'mapped' })),
  ]);
}

/** The runtime's words for what the engine asks. A quiet failure backs off without being logged as one. */
function answer(result: EngineResult): { readonly requeueAfterMs: number } | undefined {
  if (result.kind === 'requeue') return { requeueAfterMs: result.afterMs };
  if (result.kind === 'none') return undefined;
  if (result.quiet) throw requeueError(50);
  throw result.error;
}

async function exists(context: ControllerContext, pointer: Pointer): Promise<boolean> {
  try {
    await context.get(pointer);
    return true;
  } catch (error) {
    if (isNotFoundError(error)) return false;
    throw error;
  }
}

/** A child or companion whose workload is gone: a create can land after the teardown. Removed by uid, one step at a time. */
async function cleanUp(
  context: ControllerContext,
  port: StorePort,
  key: WorkloadKey,
  childTypes: readonly string[],
  statusType: string,
): Promise<void> {
  const call = { signal: context.signal };
  for (const type of childTypes) {
    for (const live of await port.list(kindOfType(type), {
      ...call,
      namespace: key.namespace,
      labels: { [parentIdLabel]: parentId(key) },
    })) {
      if (bearsMark(live, key) && isParent(readParent(live), key))
        await port.remove(live.ref, live.uid, { ...call, propagation: 'Foreground' });
    }
  }
  const companion = { namespace: key.namespace, type: statusType, id: key.name };
  try {
    const { metadata } = await context.get(companion);
    await context.destroy(companion, { owner: metadata.owner, uid: metadata.uid });
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
}
