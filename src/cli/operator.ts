import type { Environment } from '../environment/index.ts';
import { hostOperator } from '../host/index.ts';
import type { AnyResourceDefinition, DefinitionRegistry, Resource } from '../resource/index.ts';
import { pointerText } from '../resource/index.ts';
import type { Namespaces, QueueController, Runtime } from '../runtime/index.ts';
import { anyNamespace, createRuntime, destroyController, inputsIn } from '../runtime/index.ts';
import type { Server } from '../server/index.ts';
import { serveState } from '../server/index.ts';
import type { CoreState, State } from '../state/index.ts';
import { registerDefinitions, validated, wrapCore } from '../state/index.ts';
import type { OpenedStore } from '../stores/index.ts';
import { storeUrlText } from '../stores/index.ts';
import type { WorkloadDefinition } from '../workload/index.ts';
import { embeddedWorkloadController, releaseFinalizer, statusDefinition } from '../workload/index.ts';
import { localRegistry, readinessOf } from './local-control.ts';
import { programVersion } from './version.ts';

/** How long stopping all services of a machine may take, milliseconds. */
const hostGraceMs = 300_000;

/** What a module given to `serve` exports. All is optional. */
export interface ServeModule {
  readonly definitions?: readonly AnyResourceDefinition[];
  /** Workloads: each gets a controller, and `plan --module` can show their children. Their kinds need not be in `definitions`. */
  readonly workloads?: readonly WorkloadDefinition<never, never>[];
  /** Controllers, or a function that makes them. */
  readonly controllers?:
    | readonly QueueController[]
    | ((tools: {
        readonly environment: Environment;
        readonly state: State;
      }) => readonly QueueController[] | Promise<readonly QueueController[]>);
}

/** Every type that a module brings along, once. */
export function definitionsOf({ definitions = [], workloads = [] }: ServeModule): readonly AnyResourceDefinition[] {
  const all = new Set(definitions);
  for (const { definition, children, statusType } of workloads) {
    const own = definition as unknown as AnyResourceDefinition;
    for (const each of [own, ...children]) all.add(each);
    if (![...all].some(({ type }) => type === statusType)) all.add(statusDefinition(own) as unknown as AnyResourceDefinition);
  }
  return [...all];
}

export interface OperatorOptions {
  readonly environment: Environment;
  readonly store: OpenedStore;
  readonly listen: readonly string[];
  readonly directory: string;
  readonly modules: readonly ServeModule[];
  /** Whether the host operator runs. */
  readonly host: boolean;
}

/** A store that is served, with its controllers. */
export interface Operator {
  readonly state: State;
  readonly server: Server;
  /** Runs until the signal aborts; then controllers, then the server end. */
  run(signal: AbortSignal): Promise<void>;
}

/** Registers definitions, serves the store, and makes its controllers ready to run. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { environment, store, modules } = options;
  const host = options.host
    ? hostOperator({ environment, namespaces: servedNamespaces(store.state), directory: options.directory })
    : undefined;
  const registry: DefinitionRegistry = localRegistry(modules.flatMap(definitionsOf));
  const core = validated(store.state, registry);
  const state = wrapCore(core, { environment });
  await registerDefinitions(state, registry);
  // Services are stopped one after another, each with its own grace; a second Ctrl-C does not wait for them.
  const runtime = createRuntime({ state: core, environment, ...(host && { graceMs: hostGraceMs }) });
  await host?.prepare(state);
  host?.register(runtime);
  for (const module of modules) {
    const controllers =
      typeof module.controllers === 'function' ? await module.controllers({ environment, state }) : (module.controllers ?? []);
    for (const controller of controllers) runtime.register(controller);
    for (const workload of module.workloads ?? [])
      runtime.register(
        embeddedWorkloadController(workload, { environment, namespaces: servedNamespaces(core, workload.definition.defaultNamespace) }),
      );
  }
  runtime.register(destroyController(destroyedKinds(core, runtime, registry)));
  const server = await serveState({
    state: core,
    environment,
    listen: options.listen,
    directory: options.directory,
    registry,
    control: {
      version: programVersion,
      pid: process.pid,
      store: storeUrlText(store.url),
      ...(store.storeId !== undefined && { storeId: store.storeId }),
      ...(store.revision && { revision: store.revision }),
      admin: store.admin,
      validate: (resource) => registry.get(resource.metadata.type)?.from(resource as Resource) ?? (resource as Resource),
      readiness: (pointer) => readinessOf(state, pointer, registry),
      notes: (pointer) => notesOf(runtime, pointerText(pointer)),
      graph: () => JSON.stringify(runtime.graph()),
      async releaseFinalizer({ namespace, type, id, finalizer, uid, by }, rights) {
        const holder = holderOf(runtime, finalizer);
        const { record } = await releaseFinalizer(rights, environment, { namespace, type, id }, { finalizer, uid, by, holder });
        return { record: record.metadata.id, holder: record.spec.release?.holder ?? holder };
      },
    },
  });
  return {
    state,
    server,
    async run(signal) {
      await runtime.run(signal);
      await server.stop();
    },
  };
}

/** All namespaces; on a store that cannot tell which there are, the default one. */
function servedNamespaces(core: Pick<CoreState, 'watchNamespaces'>, otherwise = 'default'): Namespaces {
  return core.watchNamespaces === undefined ? [otherwise] : anyNamespace;
}

/** Kinds that people write: what they tear down goes once nothing holds it. Types with one writer are that writer's. */
function destroyedKinds(core: CoreState, runtime: Runtime, registry: DefinitionRegistry): Parameters<typeof destroyController>[0] {
  const exclusive = new Set(
    runtime.graph().controllers.flatMap(({ outputs }) => outputs.filter(({ kind }) => kind === 'exclusive').map(({ type }) => type)),
  );
  return [...registry]
    .filter(({ type }) => !exclusive.has(type))
    .flatMap(({ type, defaultNamespace }) => inputsIn(servedNamespaces(core, defaultNamespace), type, 'primary'));
}

/** Controllers hold with their own names, workloads with that of their type. */
function holderOf(runtime: Runtime, finalizer: string): string {
  const controller = runtime
    .graph()
    .controllers.find(
      ({ name, inputs }) => name === finalizer || inputs.some(({ kind, type }) => kind === 'primary' && `${type}/finalizer` === finalizer),
    );
  return controller === undefined ? 'no controller that runs here' : `the controller ${controller.name}, which runs here`;
}

function notesOf(runtime: Runtime, name: string) {
  return runtime.status().flatMap((controller) =>
    controller.keys
      .filter((key) => pointerText(key.pointer) === name)
      .map((key) => ({
        controller: controller.name,
        lastError: key.lastError ?? '',
        failures: key.failures,
        failingSince: key.failingSince ?? '',
        nextRunInMs: Math.round(key.nextRunInMs ?? 0),
        running: key.running ? 'yes' : '',
        blockedBecause: key.blockedBecause ?? '',
        blockedSince: key.blockedSince ?? '',
      })),
  );
}
