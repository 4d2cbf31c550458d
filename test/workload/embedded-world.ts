import { z } from 'zod';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { Kind, Pointer, Resource } from '../../src/resource/index.ts';
import { defineResource, isNotFoundError } from '../../src/resource/index.ts';
import type { QueueController } from '../../src/runtime/index.ts';
import { createRuntime, destroyController, inputsIn } from '../../src/runtime/index.ts';
import type { CoreState, State } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import type { ManualEnvironment } from '../../src/testing/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import type { CompanionSpec, Desired, EmbeddedControllerOptions, WorkloadOptions, WorkloadRequest } from '../../src/workload/index.ts';
import { defineWorkload, desiredChild, embeddedWorkloadController, eventDefinition } from '../../src/workload/index.ts';

/** A child whose readiness is the business of a status companion. */
export const boxes = defineResource({
  type: 'Boxes.example.dev',
  spec: z.looseObject({ size: z.number() }),
  status: { type: 'BoxStatuses.example.dev' },
});
/** The same kind in another group. */
export const otherBoxes = defineResource({ type: 'Boxes.other.dev', spec: z.looseObject({ size: z.number() }) });
export const apps = defineResource({
  type: 'Apps.example.dev',
  spec: z.object({ children: z.array(z.custom<AppChild>()) }),
  status: { type: 'AppStatuses.example.dev' },
});

export interface AppChild {
  readonly kind?: 'boxes' | 'otherBoxes';
  readonly id: string;
  readonly namespace?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly more?: Pick<Desired, 'dependsOn' | 'options'>;
}
export interface AppSpec {
  readonly children: readonly AppChild[];
}
export type AppOptions = Partial<WorkloadOptions<AppSpec, AppSpec>>;

export function childrenOf({ spec }: Pick<WorkloadRequest<AppSpec>, 'spec'>): readonly Desired[] {
  return spec.children.map(
    ({ kind = 'boxes', id, namespace = 'default', spec: own = { size: 1 }, labels = {}, annotations = {}, more }) => {
      const definition = kind === 'boxes' ? boxes : otherBoxes;
      const resource = definition.create({ id, namespace, spec: own as { size: number }, labels, annotations });
      return desiredChild(resource, { name: kind === 'boxes' ? id : `other/${id}`, ...more });
    },
  );
}

/** A store and the operators that come and go. */
export class World implements AsyncDisposable {
  readonly environment: ManualEnvironment = manualEnvironment();
  readonly store: CoreState & AsyncDisposable;
  readonly state: State;
  /** Writes of operators, one line each, without those of events. */
  readonly writes: string[] = [];
  reads = 0;
  /** Called before each write of an operator; what it throws is the answer. */
  before: (write: string) => void = () => {};
  /** The same after the write. */
  after: (write: string) => void = () => {};
  /** What the store makes of the spec that an operator writes. */
  stores: (type: string, spec: unknown) => unknown = (_type, spec) => spec;
  /** Kinds that the runtime serves from its cache. */
  cachedKinds: readonly Kind[] = [];
  /** Of the operator that starts next. */
  appOptions: AppOptions;
  readonly #controllerOptions: Partial<EmbeddedControllerOptions>;
  #stop: AbortController | undefined;
  #running: Promise<void> | undefined;

  constructor(appOptions: AppOptions = {}, controllerOptions: Partial<EmbeddedControllerOptions> = {}) {
    this.appOptions = appOptions;
    this.#controllerOptions = controllerOptions;
    this.store = memoryState({ environment: this.environment });
    this.state = wrapCore(this.store, { environment: this.environment });
  }

  controller(): QueueController {
    const options: WorkloadOptions<AppSpec, AppSpec> = {
      definition: apps as never,
      children: [boxes, otherBoxes],
      getResources: childrenOf,
      ...this.appOptions,
    };
    return embeddedWorkloadController(defineWorkload(options), { environment: this.environment, ...this.#controllerOptions });
  }

  /** Starts an operator that knows nothing of earlier ones. */
  async start(): Promise<void> {
    this.#stop = new AbortController();
    const runtime = createRuntime({ state: this.#watched(), environment: this.environment, cachedKinds: this.cachedKinds });
    runtime.register(this.controller());
    runtime.register(destroyController(inputsIn(this.#controllerOptions.namespaces ?? ['default'], apps.type, 'primary')));
    this.#running = runtime.run(this.#stop.signal);
    await this.settle();
  }

  async halt(): Promise<void> {
    this.#stop?.abort();
    await this.#running;
    this.#stop = undefined;
  }

  async restart(): Promise<void> {
    await this.halt();
    await this.start();
  }

  /** Lets everything happen that needs no time, and the little that gathers changes. */
  async settle(): Promise<void> {
    await this.environment.advance(100);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.halt();
    await this.store[Symbol.asyncDispose]();
  }

  /** What is there now is not in the log any more. */
  takeWrites(): readonly string[] {
    return this.writes.splice(0);
  }

  async app(children: readonly AppChild[], id = 'app', namespace = 'default'): Promise<void> {
    const pointer = apps.pointer(id, namespace);
    if ((await this.find(pointer)) === undefined)
      await this.state.create(apps.create({ id, namespace, spec: { children: [...children] } }));
    else await this.state.updateWithConflicts(pointer, (draft) => void (draft.spec = { children: [...children] } as never));
    await this.settle();
  }

  async find<Spec>(pointer: Pointer<Spec>): Promise<Resource<Spec> | undefined> {
    try {
      return await this.state.get(pointer);
    } catch (error) {
      if (isNotFoundError(error)) return undefined;
      throw error;
    }
  }

  async status(id = 'app', namespace = 'default'): Promise<CompanionSpec> {
    const companion = await this.state.get({ namespace, type: 'AppStatuses.example.dev', id });
    return companion.spec as CompanionSpec;
  }

  /** `<status> <reason> <message>`; `absent`. */
  async condition(type: string, id = 'app'): Promise<string> {
    const found = (await this.status(id)).conditions.find((condition) => condition.type === type);
    return found === undefined ? 'absent' : `${found.status} ${found.reason} ${found.message}`.trim();
  }

  /** What a box's own controller would say of it as it is now. */
  async ready(id: string, ready = true): Promise<void> {
    const { metadata } = await this.state.get(boxes.pointer(id));
    await this.state.modify({ metadata: { namespace: 'default', type: 'BoxStatuses.example.dev', id }, spec: {} }, (draft) => {
      draft.spec = { ready, observedVersion: metadata.version };
    });
    await this.settle();
  }

  /** Ids of the boxes that are there. */
  async present(namespace = 'default'): Promise<readonly string[]> {
    const lists = [await this.state.list(boxes.kind(namespace)), await this.state.list(otherBoxes.kind(namespace))];
    return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.id));
  }

  /** Reasons of recorded events, in order of their last time. */
  async events(): Promise<readonly string[]> {
    const { items } = await this.state.list(eventDefinition.kind('default'));
    return items.map(({ spec }) => `${spec.reason} ×${spec.count}`).sort();
  }

  #watched(): CoreState {
    const { store } = this;
    const mine = this.#stop;
    const wrap =
      (verb: 'create' | 'update' | 'destroy') =>
      async (first: { readonly metadata?: Pointer; readonly spec?: unknown } & Partial<Pointer>, options: unknown): Promise<unknown> => {
        const { type = '', id = '' } = first.metadata ?? first;
        const line = `${verb} ${type.split('.')[0]}/${id}`;
        const counted = type !== eventDefinition.type && mine === this.#stop;
        if (counted) this.before(line);
        const given = 'spec' in first ? { ...first, spec: this.stores(type, first.spec) } : first;
        const answer = await (store[verb] as (first: unknown, options: unknown) => Promise<unknown>).call(store, given, options);
        if (!counted) return answer;
        this.writes.push(line);
        this.after(line);
        return answer;
      };
    return new Proxy(store, {
      get: (target, key) => {
        if (key === 'create' || key === 'update' || key === 'destroy') return wrap(key);
        if (key === 'get' || key === 'list') this.reads++;
        const value = Reflect.get(target, key) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}
