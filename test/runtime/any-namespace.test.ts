import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { Pointer, ResourceDefinition } from '../../src/resource/index.ts';
import type { ClassicController, QueueController } from '../../src/runtime/index.ts';
import { anyNamespace, createRuntime } from '../../src/runtime/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { AggregatedWatch, CoreState } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, controllerOf, crumbs, pies, primaryApples, World } from './world.ts';

const applesAnywhere = { namespace: anyNamespace, type: apples.type, kind: 'primary' } as const;

const textOf = ({ namespace, id }: Pointer): string => `${namespace}/${id}`;

/** A controller of apples wherever they are, that notes what it runs. */
function noting(ran: string[], more: Partial<QueueController> = {}): QueueController {
  return controllerOf({ inputs: [applesAnywhere], reconcile: async (_context, { pointer }) => void ran.push(textOf(pointer)), ...more });
}

async function put<Spec>(world: World, definition: ResourceDefinition<Spec>, namespace: string, id = 'a', more: object = {}) {
  const made = await world.state.create(definition.create({ namespace, id, spec: {} as Spec, ...more }));
  await world.environment.settle();
  return made;
}

async function drop(world: World, namespace: string, id = 'a', type = apples.type): Promise<void> {
  await world.state.destroy({ namespace, type, id });
  await world.environment.settle();
}

/** Notes which watches are opened and closed, and breaks those of namespaces on demand. */
class Watches {
  readonly open: string[] = [];
  readonly streams = new Set<AggregatedWatch>();
  opened = 0;
  refused = 0;
  refuses = false;

  wrap(core: CoreState): CoreState {
    const note = async (name: string, watch: Promise<AggregatedWatch>, signal: AbortSignal | undefined): Promise<AggregatedWatch> => {
      const stream = await watch;
      this.opened++;
      this.open.push(name);
      signal?.addEventListener('abort', () => this.open.splice(this.open.indexOf(name), 1));
      return stream;
    };
    return new Proxy(core, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function') return member;
        if (key === 'watchKindAggregated')
          return (kind: Pointer, call?: { signal?: AbortSignal }) =>
            note(`${kind.type} in ${kind.namespace}`, member.call(target, kind, call) as Promise<AggregatedWatch>, call?.signal);
        if (key !== 'watchNamespaces') return member.bind(target);
        return async (type: string, call?: { signal?: AbortSignal }) => {
          if (this.refuses) {
            this.refused++;
            throw new Error('the line is down');
          }
          const watch = await note(`namespaces of ${type}`, member.call(target, type, call) as Promise<AggregatedWatch>, call?.signal);
          this.streams.add(watch);
          return watch;
        };
      },
    });
  }

  async break(): Promise<void> {
    for (const stream of this.streams) await stream[Symbol.asyncDispose]();
    this.streams.clear();
    this.open.splice(0, this.open.length, ...this.open.filter((name) => !name.startsWith('namespaces')));
  }
}

describe('a queue controller of a type in any namespace', () => {
  test('runs for what is there in every namespace, and for what comes in namespaces that come later', async () => {
    const world = new World();
    const ran: string[] = [];
    for (const namespace of ['one', 'two']) await put(world, apples, namespace);
    await put(world, pies, 'bakery');
    await world.start(noting(ran));
    await world.runtime.synced();
    expect(ran).toEqual(['one/a', 'two/a']);
    await put(world, apples, 'three');
    await put(world, apples, 'one', 'b');
    expect(ran.slice(2)).toEqual(['three/a', 'one/b']);
    await drop(world, 'three');
    expect(ran.slice(4)).toEqual(['three/a']);
    await world.end();
  });

  test('what comes in a new namespace is news: it runs before what was there at the start', async () => {
    const world = new World();
    const ran: string[] = [];
    for (const id of ['a', 'b', 'c']) await put(world, apples, 'one', id);
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await world.start(
      noting(ran, {
        reconcile: async (_context, { pointer }) => {
          ran.push(textOf(pointer));
          if (ran.length === 1) await gate;
        },
      }),
    );
    await put(world, apples, 'new');
    release();
    await world.environment.settle();
    expect(ran).toEqual(['one/a', 'new/a', 'one/b', 'one/c']);
    await world.end();
  });

  test('reads, lists, writes and holds in every namespace, and asks where its types are', async () => {
    const world = new World();
    const seen: unknown[] = [];
    const controller = controllerOf({
      inputs: [applesAnywhere],
      async reconcile(context, { pointer }) {
        const apple = await context.get(apples.pointer(pointer.id, pointer.namespace));
        if (apple.metadata.phase === 'tearingDown') {
          await context.destroy(pies.pointer(pointer.id, pointer.namespace));
          return context.removeFinalizer(pointer, 'baker');
        }
        await context.addFinalizer(pointer, 'baker');
        await context.create(pies.create({ id: pointer.id, namespace: pointer.namespace, spec: {} }));
        seen.push([
          (await context.list(apples.kind(pointer.namespace))).items.length,
          await context.namespaces(apples.type),
          await context.namespaces(pies.type),
          await context.namespaces(crumbs.type).catch((error: Error) => error.message),
        ]);
      },
    });
    await world.start(controller);
    await put(world, apples, 'north');
    await put(world, apples, 'south');
    const refusal =
      'the controller baker may not ask where Crumbs.example.dev are: declare the type as an input in any namespace, or an output';
    expect(seen).toEqual([
      [1, ['north'], ['north'], refusal],
      [1, ['north', 'south'], ['north', 'south'], refusal],
    ]);
    await world.state.teardown(apples.pointer('a', 'south'));
    await world.environment.settle();
    expect((await world.state.list(pies.kind('south'))).items).toEqual([]);
    expect((await world.state.get(apples.pointer('a', 'south'))).metadata.finalizers).toEqual([]);
    expect((await world.state.list(pies.kind('north'))).items).toHaveLength(1);
    await world.end();
  });

  test('an input of one namespace does not open the others', async () => {
    const world = new World();
    const errors: string[] = [];
    const note = (error: Error): void => void errors.push(error.message.split(':')[0] as string);
    await world.start(
      controllerOf({
        async reconcile(context) {
          await context.get(apples.pointer('a', 'elsewhere')).catch(note);
          await context.list(apples.kind('elsewhere')).catch(note);
          await context.namespaces(apples.type).catch(note);
        },
      }),
    );
    await put(world, apples, 'elsewhere');
    await put(world, apples, 'default');
    expect(errors).toEqual([
      'the controller baker may not read Apples.example.dev/elsewhere/a',
      'the controller baker may not list Apples.example.dev in elsewhere',
      'the controller baker may not ask where Apples.example.dev are',
    ]);
    await world.end();
  });

  test('mapped inputs in any namespace wake primaries of any namespace, also when they go', async () => {
    const world = new World();
    const ran: string[] = [];
    await put(world, apples, 'one');
    await world.start(
      noting(ran, {
        inputs: [applesAnywhere, { namespace: anyNamespace, type: crumbs.type, kind: 'mapped' }],
        mapInput: (_context, { metadata }) => [apples.pointer('a', metadata.labels.of ?? '')],
      }),
    );
    await put(world, crumbs, 'table', 'c', { labels: { of: 'one' } });
    await drop(world, 'table', 'c', crumbs.type);
    expect(ran).toEqual(['one/a', 'one/a', 'one/a']);
    await world.end();
  });

  test('an id can be given: that one, wherever it is', async () => {
    const world = new World();
    const ran: string[] = [];
    await world.start(noting(ran, { inputs: [{ ...applesAnywhere, id: 'b' }] }));
    for (const namespace of ['one', 'two']) for (const id of ['a', 'b']) await put(world, apples, namespace, id);
    expect(ran).toEqual(['one/b', 'two/b']);
    await world.end();
  });
});

describe('its watches', () => {
  test('there is one for the namespaces and one for each kind, shared by all, until a namespace is empty', async () => {
    const watches = new Watches();
    const world = new World({ wrap: (core) => watches.wrap(core) });
    const [first, second, third]: string[][] = [[], [], []];
    await put(world, apples, 'one');
    await world.start(
      noting(first as string[]),
      noting(second as string[], { name: 'second', outputs: [] }),
      noting(third as string[], { name: 'third', outputs: [], inputs: [{ ...primaryApples, namespace: 'one' }] }),
    );
    await put(world, apples, 'two');
    expect([...watches.open].sort()).toEqual([
      'Apples.example.dev in one',
      'Apples.example.dev in two',
      'namespaces of Apples.example.dev',
    ]);
    await drop(world, 'two');
    await drop(world, 'one');
    // The third wants that one by its name.
    expect([...watches.open].sort()).toEqual(['Apples.example.dev in one', 'namespaces of Apples.example.dev']);
    expect(watches.opened).toBe(3);
    await put(world, apples, 'two');
    await put(world, apples, 'one');
    expect(first).toEqual(['one/a', 'two/a', 'two/a', 'one/a', 'two/a', 'one/a']);
    expect(second).toEqual(first);
    expect(third).toEqual(['one/a', 'one/a', 'one/a']);
    await world.end();
    expect(watches.open).toEqual([]);
  });

  test('a broken watch of namespaces is made anew, with back-off, and what changed meanwhile is found', async () => {
    const watches = new Watches();
    const world = new World({ wrap: (core) => watches.wrap(core) });
    const ran: string[] = [];
    for (const namespace of ['stays', 'goes']) await put(world, apples, namespace);
    await world.start(noting(ran));
    watches.refuses = true;
    await watches.break();
    await world.environment.advance(10_000);
    expect(watches.refused).toBeGreaterThan(3);
    expect(watches.refused).toBeLessThan(12);
    await put(world, apples, 'new');
    await drop(world, 'goes');
    expect(ran.sort()).toEqual(['goes/a', 'goes/a', 'stays/a']);
    expect(watches.open).toContain('Apples.example.dev in goes');
    watches.refuses = false;
    await world.environment.advance(30_000);
    expect(ran.sort()).toEqual(['goes/a', 'goes/a', 'new/a', 'stays/a']);
    expect([...watches.open].sort()).toEqual([
      'Apples.example.dev in new',
      'Apples.example.dev in stays',
      'namespaces of Apples.example.dev',
    ]);
    await world.end();
  });

  test('a namespace that was empty for a while, of which its own watch learns later, is not left', async () => {
    const watches = new GatedWatches(() => world.environment);
    const world: World = new World({ wrap: (core) => watches.wrap(core) });
    const ran: string[] = [];
    await put(world, apples, 'one');
    await world.start(noting(ran));
    watches.hold(apples.type);
    await drop(world, 'one');
    await put(world, apples, 'one');
    expect(ran).toEqual(['one/a']);
    watches.release();
    await world.environment.settle();
    await put(world, apples, 'one', 'b');
    expect(ran.slice(-2).sort()).toEqual(['one/a', 'one/b']);
    await world.end();
  });

  test('many namespaces that come and go leave nothing behind', async () => {
    const watches = new Watches();
    const world = new World({ wrap: (core) => watches.wrap(core) });
    const ran: string[] = [];
    await world.start(noting(ran));
    for (let round = 0; round < 40; round++) {
      await put(world, apples, `n${round}`);
      await drop(world, `n${round}`);
    }
    expect(ran).toHaveLength(80);
    expect(watches.open).toEqual(['namespaces of Apples.example.dev']);
    expect(world.environment.open.counts().watch).toBe(1);
    await world.end();
  });
});

describe('a classic controller of a type in any namespace', () => {
  test('wakes for every one, and may ask for it while it runs', async () => {
    const world = new World();
    const seen: string[][] = [];
    const controller: ClassicController = {
      name: 'counter',
      inputs: [],
      outputs: [],
      async run(context) {
        context.updateInputs([{ namespace: anyNamespace, type: apples.type, kind: 'weak' }]);
        while (await context.nextWakeUp()) seen.push([...(await context.namespaces(apples.type))]);
      },
    };
    await put(world, apples, 'one');
    world.runtime.register(controller);
    await world.start();
    await put(world, apples, 'two');
    await drop(world, 'one');
    expect(seen.at(-1)).toEqual(['two']);
    expect(seen.some((namespaces) => namespaces.join() === 'one,two')).toBe(true);
    await world.end();
  });
});

describe('registration', () => {
  test('a store that cannot tell refuses it, and nothing is left behind', async () => {
    const world = new World({
      wrap: (core) => new Proxy(core, { get: (target, key) => (key === 'watchNamespaces' ? undefined : Reflect.get(target, key)) }),
    });
    expect(() => world.runtime.register(noting([]))).toThrow(
      'controller baker: the input Apples.example.dev in any namespace: this store cannot tell in which namespaces a type has resources; name the namespaces',
    );
    expect(world.runtime.graph()).toEqual({ controllers: [] });
    await world.end();
  });

  test('twice the same is refused; the graph says that it is any namespace, and a namespace of a like name is another', async () => {
    const world = new World();
    expect(() => world.runtime.register(noting([], { inputs: [applesAnywhere, applesAnywhere] }))).toThrow(
      'the input Apples.example.dev in any namespace is declared twice',
    );
    world.runtime.register(noting([], { inputs: [applesAnywhere, { ...applesAnywhere, namespace: '*' }] }));
    expect(JSON.parse(JSON.stringify(world.runtime.graph())).controllers[0].inputs).toEqual([
      { type: apples.type, kind: 'primary' },
      { namespace: '*', type: apples.type, kind: 'primary' },
    ]);
    await world.end();
  });
});

test('the same over the wire', async () => {
  const environment = nodeEnvironment();
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const inner = memoryState({ environment });
  const control = { version: '0', pid: process.pid, store: 'memory:' };
  const server = await serveState({ state: inner, environment, listen: ['unix:api.sock'], directory: folder, control });
  const core = await openRemoteState({ address: `unix:${join(folder, 'api.sock')}`, environment });
  const state = wrapCore(core, { environment });
  const runtime = createRuntime({ state: core, environment });
  runtime.register(
    controllerOf({
      inputs: [applesAnywhere],
      async reconcile(context, { pointer }) {
        await context.modify(pies.create({ id: pointer.id, namespace: pointer.namespace, spec: {} }), () => {});
      },
    }),
  );
  const stop = new AbortController();
  const running = runtime.run(stop.signal);
  await state.create(apples.create({ namespace: 'early', id: 'a', spec: {} }));
  await runtime.synced();
  await state.create(apples.create({ namespace: 'late', id: 'a', spec: {} }));
  const signal = AbortSignal.timeout(20_000);
  for (const namespace of ['early', 'late']) await state.watchFor(pies.pointer('a', namespace), { phases: ['running'] }, { signal });
  stop.abort();
  await running;
  for (const part of [core, server, inner]) await part[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});
