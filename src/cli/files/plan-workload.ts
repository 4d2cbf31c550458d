import type { Environment } from '../../environment/index.ts';
import { silentLogger } from '../../environment/index.ts';
import { stacksController, stackWorkload } from '../../host/index.ts';
import type { AnyResourceDefinition, Pointer, Resource } from '../../resource/index.ts';
import { DefinitionRegistry, pointerText } from '../../resource/index.ts';
import type { ControllerContext } from '../../runtime/index.ts';
import type { State } from '../../state/index.ts';
import type { Plan, WorkloadDefinition } from '../../workload/index.ts';
import { embeddedPort, kindOfType, plan, WorkloadEngine } from '../../workload/index.ts';
import type { ServeModule } from '../operator.ts';

/** A kind of workload whose children can be computed here. */
export interface KnownWorkload {
  readonly definition: WorkloadDefinition<never, never>;
  /** The name of its controller: who owns its children. */
  readonly owner: string;
}

/** What a reconcile would make of one workload. */
export interface PlannedWorkload extends Plan {
  /** In the order in which they run. */
  readonly phases: readonly string[];
}

/** The workloads of the host operator and of modules, by type. */
export function knownWorkloads(
  environment: Environment,
  directory: string,
  modules: readonly ServeModule[],
): ReadonlyMap<string, KnownWorkload> {
  const stacks = stackWorkload({ environment, directory }) as unknown as WorkloadDefinition<never, never>;
  const others = modules.flatMap(({ workloads = [] }) => workloads);
  return new Map([
    [stacks.definition.type, { definition: stacks, owner: stacksController }],
    ...others.map((definition) => [definition.definition.type, { definition, owner: `${definition.kind.kind}-reconciler` }] as const),
  ]);
}

/** What would become of a workload's children if it were written like this; nothing is written. */
export async function planWorkload(
  { definition, owner }: KnownWorkload,
  next: Resource,
  state: State,
  environment: Environment,
  signal: AbortSignal,
): Promise<PlannedWorkload> {
  const engine = new WorkloadEngine(definition, environment);
  // The engine reads the workload as it would be, and all else as it is. It has no way to write.
  const reader: Pick<ControllerContext, 'name' | 'signal' | 'log' | 'get' | 'list'> = {
    name: owner,
    signal,
    log: silentLogger,
    get: ((pointer: Pointer) =>
      pointerText(pointer) === pointerText(next.metadata) ? Promise.resolve(next) : state.get(pointer)) as ControllerContext['get'],
    list: ((kind, options) => state.list(kind, options)) as ControllerContext['list'],
  };
  const port = embeddedPort({
    context: reader as ControllerContext,
    statusType: definition.statusType,
    registry: new DefinitionRegistry([...definition.children, ...(definition.dependencyKinds ?? [])] as readonly AnyResourceDefinition[]),
    ownVersions: new Map(),
    emit: () => {},
  });
  const { namespace, type, id } = next.metadata;
  const view = await port.workload({ ...kindOfType(type), namespace, name: id }, { signal });
  if (view === undefined) throw new Error(`${pointerText(next.metadata)} was not found where it was put`);
  const planned = await plan(engine, view, port, silentLogger, signal);
  return { ...planned, phases: definition.phases.phases(view.status?.created === true ? 'update' : 'create').map(({ name }) => name) };
}
