import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import type { Span, Tracer } from '../../src/environment/index.ts';
import { MemoryTracer, nodeEnvironment, noSpan, noTracer } from '../../src/environment/index.ts';
import type { ClassicContext } from '../../src/runtime/index.ts';
import { createRuntime, requeueError, skipError } from '../../src/runtime/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import { metered, traced, wrapCore } from '../../src/state/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import { apples, controllerOf, pies, World } from '../runtime/world.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };
const pointer = { ...kind, id: 'a' };
const about = { 'steadystate.namespace': 'default', 'steadystate.type': kind.type };

test('every call of the state is a span, below the one that its caller names', async () => {
  const environment = manualEnvironment();
  const tracer = new MemoryTracer();
  await using core = memoryState({ environment });
  const state = wrapCore(traced(core, tracer), { environment });
  const outer = tracer.start('outer');
  const call = { span: outer.context as NonNullable<typeof outer.context> };
  await state.create({ metadata: pointer, spec: 1 }, call);
  await state.get(pointer, call);
  await state.list(kind, call);
  await state.updateWithConflicts(pointer, (draft) => void (draft.spec = 2), call);
  for (const watch of [state.watch(pointer, call), state.watchKind(kind, call)]) await (await watch)[Symbol.asyncDispose]();
  for (const watch of [state.watchKindAggregated(kind, call), state.watchKinds([kind], call)]) await (await watch)[Symbol.asyncDispose]();
  await state.watchFor(pointer, { phases: ['running'] }, call);
  await state.teardown(pointer, call);
  await state.destroy(pointer, call);
  await expect(state.get(pointer, call)).rejects.toMatchObject({ code: 'NotFound' });
  outer.end();
  const spans = tracer.spans.slice(1);
  expect(spans.map(({ name }) => name.replace('state.', ''))).toEqual([
    'create',
    'get',
    'list',
    'get',
    'update',
    'watch',
    'watchKind',
    'watchKindAggregated',
    'watchKinds',
    'watch',
    'get',
    'update',
    'destroy',
    'get',
  ]);
  for (const span of tracer.spans) expect(span.ended, span.name).toBe(true);
  for (const span of spans) expect(span.parent, span.name).toEqual(outer.context);
  expect(spans[0]?.attributes).toEqual({ ...about, 'steadystate.id': 'a' });
  expect(spans[2]?.attributes).toEqual(about);
  const failed = spans.at(-1);
  expect(failed?.attributes['steadystate.code']).toBe('NotFound');
  expect(failed?.error).toMatchObject({ code: 'NotFound' });
  expect(spans.filter(({ error }) => error !== undefined)).toEqual([failed]);
});

test('without a tracer, and without metrics, the wrappers leave themselves out', async () => {
  const environment = nodeEnvironment();
  await using core: CoreState & AsyncDisposable = memoryState({ environment });
  expect(traced(core, noTracer)).toBe(core);
  expect(traced(core, environment.tracer)).toBe(core);
  expect(metered(core, { environment })).toBe(core);
  expect(noTracer.start('x')).toBe(noSpan);
});

test('native teardown and revisions are passed through', async () => {
  const environment = manualEnvironment();
  const tracer = new MemoryTracer();
  await using core = memoryState({ environment });
  const seen: unknown[] = [];
  const native: CoreState = Object.assign(Object.create(core), {
    get: core.get.bind(core),
    teardown: async (...given: unknown[]) => seen.push(given) > 0,
    teardownAndDestroy: async (...given: unknown[]) => void seen.push(given),
    waitForRevision: async (revision: number) => void seen.push(revision),
  });
  const state = wrapCore(traced(native, tracer), { environment });
  expect(await state.teardown(pointer, { owner: 'A' })).toBe(true);
  await state.teardownAndDestroy(pointer, { owner: 'A' });
  await state.waitForRevision?.(7);
  expect(tracer.spans.map(({ name }) => name)).toEqual(['state.teardown', 'state.teardownAndDestroy']);
  expect(seen).toEqual([
    [pointer, { owner: 'A', span: tracer.spans[0]?.context }],
    [pointer, { owner: 'A', span: tracer.spans[1]?.context }],
    7,
  ]);
});

test('a reconcile is a span, with how it ended; what it reads and writes is part of it', async () => {
  const tracer = new MemoryTracer();
  const world = new World({ environment: { tracer }, wrap: (core) => traced(core, tracer) });
  const outcomes = [
    async () => {},
    async () => ({ requeueAfterMs: 10 }),
    async () => Promise.reject(requeueError(10)),
    async () => Promise.reject(new Error('no flour')),
    async () => Promise.reject(skipError()),
  ];
  let runs = 0;
  await world.start(
    controllerOf({
      reconcile: async (context) => {
        context.span.addEvent('kneading', { grams: 500 });
        await context.get(apples.pointer('a'));
        if (runs === 0) await context.modify(pies.create({ id: 'a', spec: {} }), () => {});
        return outcomes[runs++]?.();
      },
    }),
  );
  await world.apple('a');
  await world.touch('a');
  await world.environment.advance(10_000);
  const reconciles = tracer.named('reconcile');
  expect(reconciles.map(({ attributes }) => attributes['steadystate.outcome'])).toEqual([
    'done',
    'requeued',
    'requeued',
    'failed',
    'skipped',
  ]);
  const [first, , , failed] = reconciles;
  expect(first).toMatchObject({
    ended: true,
    parent: undefined,
    attributes: { 'steadystate.controller': 'baker', 'steadystate.type': apples.type, 'steadystate.id': 'a', 'steadystate.failures': 0 },
    events: [{ name: 'kneading', attributes: { grams: 500 } }],
  });
  expect(failed?.error).toEqual(new Error('no flour'));
  expect(reconciles.filter(({ error }) => error !== undefined)).toEqual([failed]);
  const below = (span: (typeof reconciles)[number] | undefined) =>
    tracer.spans.filter(({ parent }) => parent?.spanId === span?.context.spanId).map(({ name }) => name);
  expect(below(first)).toEqual(['state.get', 'state.get', 'state.create']);
  expect(below(failed)).toEqual(['state.get']);
  await world.end();
});

test('a run of a classic controller is a span from one wake-up to the next', async () => {
  const tracer = new MemoryTracer();
  const environment = manualEnvironment({ tracer });
  await using core = memoryState({ environment });
  const runtime = createRuntime({ state: traced(core, tracer), environment });
  let runs = 0;
  runtime.register({
    name: 'classic',
    inputs: [{ ...apples.kind(), kind: 'weak' }],
    outputs: [],
    run: async (context: ClassicContext) => {
      while (await context.nextWakeUp()) {
        context.span.addEvent('looked');
        await context.list(apples.kind());
        if (++runs === 2) throw new Error('no flour');
      }
    },
  });
  const stop = new AbortController();
  const running = runtime.run(stop.signal);
  await environment.settle();
  await wrapCore(core, { environment }).create(apples.create({ id: 'a', spec: {} }));
  await environment.advance(5_000);
  stop.abort();
  await running;
  const spans = tracer.named('reconcile');
  expect(spans.map(({ attributes }) => attributes['steadystate.outcome'])).toEqual(['done', 'failed', 'done']);
  expect(spans[1]?.error).toEqual(new Error('no flour'));
  for (const span of spans) {
    expect(span).toMatchObject({ ended: true, attributes: { 'steadystate.controller': 'classic' }, events: [{ name: 'looked' }] });
    expect(tracer.named('state.list').filter(({ parent }) => parent?.spanId === span.context.spanId)).toHaveLength(1);
  }
});

test('a tracer that throws stops nothing', async () => {
  const broken = (): never => {
    throw new Error('out of ink');
  };
  const half: Span = { context: undefined, setAttributes: broken, addEvent: broken, fail: broken, end: broken, run: broken };
  for (const tracer of [{ start: broken }, { start: () => half }] satisfies Tracer[]) {
    const world = new World({ environment: { tracer } });
    const seen: string[] = [];
    await world.start(
      controllerOf({
        reconcile: async (context, { pointer: { id } }) => {
          context.span.addEvent('x');
          seen.push(id);
          throw new Error('mine');
        },
      }),
    );
    await world.apple('a');
    expect(seen).toEqual(['a']);
    expect(world.runtime.status()[0]?.keys[0]?.lastError).toBe('mine');
    await world.end();
  }
});

test('a trace goes on in a server: its calls are spans below those of the client', async () => {
  const client = new MemoryTracer();
  const far = new MemoryTracer();
  const environment = nodeEnvironment({ tracer: far });
  const directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  {
    await using core = memoryState({ environment });
    await using server = await serveState({
      state: traced(core, far),
      environment,
      listen: ['unix:s'],
      directory,
      control: { version: '1', pid: 1, store: 'memory:' },
    });
    await using remote = await openRemoteState({ address: server.addresses[0] as string, environment: nodeEnvironment() });
    const state = wrapCore(traced(remote, client), { environment });
    await state.create({ metadata: pointer, spec: 1 });
    await expect(state.create({ metadata: pointer, spec: 1 })).rejects.toMatchObject({ code: 'Conflict' });
    await state.list(kind);
    await (await state.watchKinds([kind]))[Symbol.asyncDispose]();
  }
  await rm(directory, { recursive: true });
  const byName = (name: string) => far.named(name).at(-1);
  const created = far.named('cosi.resource.State/Create')[0];
  expect(created).toMatchObject({
    kind: 'server',
    ended: true,
    attributes: { 'rpc.system': 'grpc', 'rpc.service': 'cosi.resource.State', 'rpc.method': 'Create' },
    parent: { ...client.named('state.create')[0]?.context, remote: true },
  });
  expect(far.named('state.create')[0]?.parent).toEqual(created?.context);
  expect(byName('cosi.resource.State/Create')?.attributes['steadystate.code']).toBe('Conflict');
  expect(byName('cosi.resource.State/List')?.parent?.spanId).toBe(client.named('state.list')[0]?.context.spanId);
  const watched = byName('steadystate.v1.Control/WatchKinds');
  expect(watched).toMatchObject({ ended: true, parent: { spanId: client.named('state.watchKinds')[0]?.context.spanId } });
  // Nobody named a parent for the very first call.
  expect(byName('steadystate.v1.Control/Info')?.parent).toBeUndefined();
});

test('metrics and a tracer that throw fail no call', async () => {
  const broken = (): never => {
    throw new Error('out of ink');
  };
  const half: Span = { context: undefined, setAttributes: broken, addEvent: broken, fail: broken, end: broken, run: broken };
  const instrument = { add: broken, set: broken, observe: broken };
  const metrics = { counter: () => instrument, gauge: () => instrument, histogram: () => instrument };
  const directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  for (const tracer of [{ start: broken }, { start: () => half }] satisfies Tracer[]) {
    const environment = nodeEnvironment({ metrics, tracer });
    await using core = memoryState({ environment });
    const watched = metered(traced(core, tracer), { environment });
    const control = { version: '1', pid: 1, store: 'memory:' };
    await using server = await serveState({ state: watched, environment, listen: ['unix:s'], directory, control });
    await using remote = await openRemoteState({ address: server.addresses[0] as string, environment });
    const made = await remote.create({ metadata: pointer, spec: 1 });
    expect(await watched.get(pointer)).toEqual(made);
    await expect(remote.create({ metadata: pointer, spec: 1 })).rejects.toMatchObject({ code: 'Conflict' });
    expect((await remote.list(kind)).items).toHaveLength(1);
  }
  await rm(directory, { recursive: true });
});
