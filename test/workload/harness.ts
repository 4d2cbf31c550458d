import { z } from 'zod';
import { silentLogger } from '../../src/environment/index.ts';
import { defineResource } from '../../src/resource/index.ts';
import type { ManualEnvironment } from '../../src/testing/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import type {
  ChildOptions,
  Desired,
  EngineResult,
  WorkloadKey,
  WorkloadOptions,
  WorkloadStatus,
  WorkloadView,
} from '../../src/workload/index.ts';
import { defineWorkload, desiredChild, WorkloadEngine } from '../../src/workload/index.ts';
import { FakePort, refIn } from './fake-port.ts';

export const boxes = defineResource({ type: 'Boxes.example.dev', spec: z.object({ size: z.number() }) });
export const rooms = defineResource({ type: 'Rooms.example.dev', spec: z.object({}) });

const box = z.object({
  name: z.string(),
  size: z.number(),
  after: z.array(z.string()).optional(),
  options: z.custom<ChildOptions>().optional(),
});
export const apps = defineResource({
  type: 'Apps.example.dev',
  spec: z.object({ boxes: z.array(box) }),
  status: { type: 'AppStatuses.example.dev' },
});
export type AppSpec = { readonly boxes: readonly z.infer<typeof box>[] };

export const app: WorkloadKey = { group: 'example.dev', kind: 'Apps', namespace: 'default', name: 'app' };

/** The children that an app asks for. */
export function boxesOf({ spec }: { readonly spec: AppSpec }): readonly Desired[] {
  return spec.boxes.map(({ name, size, after, options }) =>
    desiredChild(boxes.create({ id: name, spec: { size } }), { name, ...(after && { dependsOn: after }), ...(options && { options }) }),
  );
}

/** One engine over a fake store, with time that stands still. */
export class Harness {
  readonly environment: ManualEnvironment = manualEnvironment();
  readonly port = new FakePort();
  readonly #more: Partial<WorkloadOptions<AppSpec, unknown>>;
  engine: WorkloadEngine<AppSpec, unknown>;

  constructor(more: Partial<WorkloadOptions<AppSpec, unknown>> = {}) {
    this.#more = more;
    this.engine = this.#newEngine();
  }

  #newEngine(): WorkloadEngine<AppSpec, unknown> {
    const options: WorkloadOptions<AppSpec, unknown> = {
      definition: apps,
      children: [boxes],
      getResources: boxesOf,
      ...this.#more,
    };
    return new WorkloadEngine(defineWorkload(options), this.environment);
  }

  /** What a new process would know. */
  restart(): void {
    this.engine = this.#newEngine();
  }

  /** Boxes by name and size. */
  ask(sizes: Readonly<Record<string, number>>, more: Partial<AppSpec['boxes'][number]> = {}): WorkloadView {
    return this.port.user(app, { spec: { boxes: Object.entries(sizes).map(([name, size]) => ({ name, size, ...more })) } });
  }

  reconcile(): Promise<EngineResult> {
    return this.engine.reconcile(app, this.port, silentLogger, new AbortController().signal);
  }

  /** Reconciles until a run writes nothing. */
  async settle(most = 50): Promise<EngineResult> {
    for (let runs = 0; runs < most; runs++) {
      const before = this.port.writes.length;
      const result = await this.reconcile();
      if (this.port.writes.length === before) return result;
    }
    throw new Error(`something is written still after ${most} runs: ${this.port.writes.slice(-8).join(', ')}`);
  }

  get view(): WorkloadView {
    const view = this.port.workloadsByKey.get('Apps.example.dev/default/app');
    if (view === undefined) throw new Error('there is no app');
    return view;
  }

  get status(): WorkloadStatus {
    if (this.view.status === undefined) throw new Error('the app has no status');
    return this.view.status;
  }

  /** `<status> <reason>`; `absent`. */
  condition(type: string): string {
    const found = this.status.conditions.find((condition) => condition.type === type);
    return found === undefined ? 'absent' : `${found.status} ${found.reason}`;
  }

  message(type: string): string | undefined {
    return this.status.conditions.find((condition) => condition.type === type)?.message;
  }

  /** Names of the boxes that are there. */
  get present(): readonly string[] {
    return [...this.port.objects.values()].map(({ ref }) => ref.name).sort();
  }

  takeWrites(): readonly string[] {
    return this.port.writes.splice(0);
  }
}

export const boxRef = (name: string): ReturnType<typeof refIn> => refIn(boxes, name);
