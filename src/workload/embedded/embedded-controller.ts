import type { Environment } from '../../environment/index.ts';
import type { Pointer } from '../../resource/index.ts';
import { DefinitionRegistry, isNotFoundError, pointerOf } from '../../resource/index.ts';
import type { ControllerContext, Input, MappedInput, Namespaces, QueueController } from '../../runtime/index.ts';
import { anyNamespace, inputsIn, isAnyNamespace, namespacesWith, requeueError } from '../../runtime/index.ts';
import type { WorkloadDefinition } from '../define-workload.ts';
import { kindOfType, typeOfKind } from '../define-workload.ts';
import { WorkloadEngine } from '../engine.ts';
import type { EngineResult } from '../engine-result.ts';
import { readParent } from '../identity.ts';
import type { StorePort, WorkloadEvent, WorkloadKey } from '../port.ts';
import { checkDependencyCycles } from '../validate.ts';
import { embeddedPort, pointerKey } from './embedded-port.ts';
import { EventLog, eventDefinition } from './event-log.ts';
import { removeOrphans } from './orphans.ts';

export interface EmbeddedControllerOptions {
  readonly environment: Environment;
  /** The controller's name, and so the owner of all children. @default `<Kind>-reconciler` */
  readonly name?: string;
  /** Namespaces whose workloads are kept; `anyNamespace`: all, also those that come later. @default the definition's default namespace */
  readonly namespaces?: Namespaces;
  /** Where children, dependencies and collections are watched, beside `namespaces`. @default none */
  readonly childNamespaces?: Namespaces;
  /** @default 1 */
  readonly concurrency?: number;
  /** How many `Events` resources are kept in each namespace; 0: events go to the log only. @default 500 */
  readonly eventLimit?: number;
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
  const { environment, eventLimit = 500, childNamespaces = [] } = options;
  const engine = new WorkloadEngine(definition, environment);
  const name = options.name ?? `${definition.kind.kind}-reconciler`;
  const namespaces = options.namespaces ?? [definition.definition.defaultNamespace];
  const watched: Namespaces =
    isAnyNamespace(namespaces) || isAnyNamespace(childNamespaces) ? anyNamespace : [...new Set([...namespaces, ...childNamespaces])];
  /** What wakes all workloads when it changes. */
  const shared = [...(definition.dependencyKinds ?? []), ...(definition.collection ? [definition.collection.definition] : [])];
  const registry = new DefinitionRegistry([...definition.children, ...shared]);
  const ownVersions = new Map<string, string>();
  const eventLog = eventLimit > 0 ? new EventLog(environment, eventLimit) : undefined;
  /** How long the last reconcile of each workload took, milliseconds, on the monotonic clock. */
  const durations = new Map<string, number>();
  const workloadType = definition.definition.type;
  const childTypes = new Set([...definition.children.map((child) => child.type), ...(definition.retiredChildren ?? [])]);
  const companionTypes = new Map(
    [...registry].filter((child) => child.statusType !== undefined).map((child) => [child.statusType as string, child.type]),
  );
  const sharedTypes = new Set(shared.map((kind) => kind.type));
  const childKinds = [...childTypes].map(kindOfType);

  const portFor = (context: ControllerContext): StorePort =>
    embeddedPort({
      context,
      statusType: definition.statusType,
      registry,
      ownVersions,
      namespacesOf(kind) {
        const type = typeOfKind(kind);
        return namespacesWith(context, type === workloadType || type === definition.statusType ? namespaces : watched, type);
      },
      emit: (event) => {
        context.log.log(event.type === 'Warning' ? 'warn' : 'info', `${event.reason}: ${event.note}`, {
          workload: `${event.regarding.namespace}/${event.regarding.name}`,
        });
        eventLog?.add(event);
        options.onEvent?.(event);
      },
    });

  const keyOf = ({ namespace, id }: Pointer): WorkloadKey => ({ ...definition.kind, namespace, name: id });

  return {
    name,
    concurrency: options.concurrency ?? 1,
    inputs: [
      ...inputsIn(namespaces, workloadType, 'primary'),
      ...inputsOf(namespaces, [definition.statusType]),
      ...inputsOf(
        watched,
        [...childTypes, ...companionTypes.keys(), ...sharedTypes].filter((type) => type !== definition.statusType),
      ),
    ],
    outputs: [
      ...[...childTypes].map((type) => ({ type, kind: 'shared' as const })),
      { type: definition.statusType, kind: 'exclusive' as const },
      ...(eventLog === undefined ? [] : [{ type: eventDefinition.type, kind: 'shared' as const }]),
    ],

    async reconcile(context, { pointer }) {
      const key = keyOf(pointer);
      const port = portFor(context);
      const started = environment.elapsed();
      try {
        const result = await engine.reconcile(key, port, context.log, context.signal);
        if (result.kind === 'gone') {
          durations.delete(pointerKey(pointer));
          const { namespace, id } = pointer;
          await removeOrphans(context, port, key, childKinds, { namespace, type: definition.statusType, id });
        } else durations.set(pointerKey(pointer), environment.elapsed() - started);
        return answer(result);
      } finally {
        // Nothing that must be right waits here: what happened is on record in the status; this only tells it.
        if (!context.signal.aborted) await eventLog?.flush(context, context.log);
      }
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
    const resourceType = companionTypes.get(type);
    if (resourceType !== undefined && childTypes.has(resourceType))
      parents.push(...(await parentOfCompanion(context, metadata, resourceType)));
    if (sharedTypes.has(type) || (resourceType !== undefined && sharedTypes.has(resourceType))) parents.push(...(await all(context)));
    return parents;
  }

  /** The companion of a child bears no mark; its child does. */
  async function parentOfCompanion(context: ControllerContext, { namespace, id }: Pointer, type: string): Promise<readonly Pointer[]> {
    try {
      return parentOf((await context.get({ namespace, type, id })).metadata.annotations);
    } catch (error) {
      if (isNotFoundError(error)) return [];
      throw error;
    }
  }

  async function all(context: ControllerContext): Promise<readonly Pointer[]> {
    const places = await namespacesWith(context, namespaces, workloadType);
    const lists = await Promise.all(places.map((namespace) => context.list({ namespace, type: workloadType })));
    return lists.flatMap(({ items }) => items.map(pointerOf));
  }

  function isKept(namespace: string): boolean {
    return isAnyNamespace(namespaces) || namespaces.includes(namespace);
  }

  function parentOf(annotations: Readonly<Record<string, string>>): readonly Pointer[] {
    const mark = readParent({ annotations });
    if (mark === undefined || typeOfKind(mark) !== workloadType || !isKept(mark.namespace)) return [];
    return [{ namespace: mark.namespace, type: workloadType, id: mark.name }];
  }
}

/** The controllers of several kinds of workloads. Invalid when the kinds depend on each other in a circle. */
export function embeddedWorkloadControllers(
  definitions: readonly WorkloadDefinition<never, never>[],
  options: Omit<EmbeddedControllerOptions, 'name'>,
): readonly QueueController[] {
  checkDependencyCycles(definitions);
  return definitions.map((definition) => embeddedWorkloadController(definition, options));
}

function inputsOf(namespaces: Namespaces, types: readonly string[]): readonly Input[] {
  return [...new Set(types)].flatMap((type) => inputsIn(namespaces, type, 'mapped'));
}

/** The runtime's words for what the engine asks. A quiet failure backs off without being logged as one. */
function answer(result: EngineResult): { readonly requeueAfterMs: number } | undefined {
  if (result.kind === 'requeue') return { requeueAfterMs: result.afterMs };
  if (result.kind === 'none' || result.kind === 'gone') return undefined;
  if (result.afterMs === undefined) throw result.error;
  throw result.quiet ? requeueError(result.afterMs) : requeueError(result.afterMs, result.error);
}
