import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isNotFoundError } from '../../src/resource/index.ts';
import type { AnyController, Runtime } from '../../src/runtime/index.ts';
import { cleanup, createRuntime, destroyController, queueTransform, removeOutputs, transform } from '../../src/runtime/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import { ambiguous, unavailable, versionConflict } from '../../src/state/index.ts';
import { GatedWatches } from './gated-watches.ts';
import { apples, crumbs, pies, World } from './world.ts';

type Size = { size: number };

const settings = {
  name: 'baker',
  input: apples.kind(),
  output: pies.kind(),
  map: ({ metadata, spec }: { readonly metadata: { readonly id: string }; readonly spec: Size }) =>
    spec.size === 0 ? undefined : pies.create({ id: `${metadata.id}-${spec.size % 2}`, spec: {} }),
  unmap: ({ id }: { readonly id: string }) => apples.pointer(id.slice(0, -2)),
  transform: (_context: unknown, { spec }: { readonly spec: Size }, draft: { spec: Size }) => {
    draft.spec.size = spec.size;
  },
};

const controllers: Readonly<Record<string, () => AnyController>> = {
  queueTransform: () => queueTransform<Size, Size>({ ...settings, concurrency: 3 }),
  transform: () => transform<Size, Size>({ ...settings, inputFinalizers: true }),
};

/** Every kind of fault of a write, by chance. */
function faulty(core: CoreState, chance: () => number, faults: Map<string, number>): CoreState {
  const happen = (name: string): void => void faults.set(name, (faults.get(name) ?? 0) + 1);
  return new Proxy(core, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      if (key !== 'create' && key !== 'update' && key !== 'destroy') return member.bind(target);
      return async (what: { readonly metadata?: never }, options: unknown) => {
        const draw = chance();
        const pointer = (what.metadata ?? what) as { namespace: string; type: string; id: string };
        if (draw < 0.08) {
          happen('refused');
          throw unavailable('the line is dead');
        }
        if (draw < 0.16) {
          happen('lost request');
          throw ambiguous(pointer, 'no answer came');
        }
        if (draw < 0.24 && key === 'update') {
          happen('conflict');
          throw versionConflict(pointer, '1', '2');
        }
        const done: unknown = await member.call(target, what, options);
        if (draw > 0.85) {
          happen('lost answer');
          throw ambiguous(pointer, 'no answer came');
        }
        return done;
      };
    },
  });
}

type Step =
  | { readonly do: 'put'; readonly id: string; readonly size: number }
  | { readonly do: 'teardown' | 'hold' | 'letGo' | 'tearOutputDown'; readonly id: string }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'breakWatches' | 'expireBookmarks' | 'restart'; readonly id: string };

const id = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), id, size: fc.nat({ max: 5 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('teardown' as const, 'hold' as const, 'letGo' as const, 'tearOutputDown' as const), id }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 20, 700) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('breakWatches' as const, 'expireBookmarks' as const, 'restart' as const), id }) },
);

const faults = new Map<string, number>();

test.each(Object.keys(controllers))(
  '%s: whatever goes wrong, in the end there is one output for each input, and no other',
  async (name) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }), fc.integer(), async (steps, seed) => {
        const world = new World({ historySize: 8, environment: { seed } });
        const gates = new GatedWatches(() => world.environment);
        let calm = false;
        const core = faulty(gates.wrap(world.memory), () => (calm ? 0.5 : world.environment.random()), faults);
        let stop = new AbortController();
        let ended: Promise<void> = Promise.resolve();
        let runtime: Runtime;
        const start = (): void => {
          stop = new AbortController();
          runtime = createRuntime({ state: core, environment: world.environment });
          runtime.register((controllers[name] as () => AnyController)());
          runtime.register(destroyController([apples.kind()]));
          ended = runtime.run(stop.signal);
        };
        const attempt = (work: Promise<unknown>): Promise<unknown> => work.catch(() => {});
        const outputOf = async (input: string) =>
          (await world.state.list(pies.kind())).items.find(({ metadata }) => metadata.id.startsWith(`${input}-`))?.metadata;
        start();
        for (const now of steps) {
          if (now.do === 'put') {
            const { size } = now;
            await attempt(world.state.modify(apples.create({ id: now.id, spec: { size } }), (draft) => void (draft.spec.size = size)));
          } else if (now.do === 'teardown') await attempt(world.state.teardown(apples.pointer(now.id)));
          else if (now.do === 'advance') await world.environment.advance(now.ms);
          else if (now.do === 'breakWatches') gates.breakAll();
          else if (now.do === 'expireBookmarks') {
            gates.bookmarksExpire = true;
            gates.breakAll();
          } else if (now.do === 'restart') {
            stop.abort();
            await world.environment.settle();
            await ended;
            start();
          } else {
            const output = await outputOf(now.id);
            if (output === undefined) continue;
            if (now.do === 'hold') await attempt(world.state.addFinalizer(output, 'eater'));
            else if (now.do === 'letGo') await attempt(world.state.removeFinalizer(output, 'eater'));
            else await attempt(world.state.teardown(output, { owner: 'baker' }));
          }
        }
        calm = true;
        gates.bookmarksExpire = false;
        for (const { metadata } of (await world.state.list(pies.kind())).items)
          await attempt(world.state.removeFinalizer(metadata, 'eater'));
        await world.environment.advance(300_000);
        const inputs = (await world.state.list(apples.kind())).items;
        expect(inputs.filter(({ metadata }) => metadata.phase === 'tearingDown')).toEqual([]);
        const wanted = inputs
          .filter(({ spec }) => spec.size > 0)
          .map(({ metadata, spec }) => [`${metadata.id}-${spec.size % 2}`, spec.size]);
        const outputs = (await world.state.list(pies.kind())).items;
        expect(outputs.map(({ metadata, spec }) => [metadata.id, spec.size])).toEqual(wanted);
        expect(outputs.every(({ metadata }) => metadata.phase === 'running')).toBe(true);
        // Then it is quiet: nothing is written any more.
        const { revision } = await world.state.list(apples.kind());
        await world.environment.advance(300_000);
        expect((await world.state.list(apples.kind())).revision).toBe(revision);
        stop.abort();
        await world.environment.settle();
        await ended;
        await world.end();
      }),
      { numRuns: 60 },
    );
    for (const fault of ['refused', 'lost request', 'conflict', 'lost answer']) expect(faults.get(fault), fault).toBeGreaterThan(20);
  },
  120_000,
);

test('cleanup: whatever goes wrong, an input goes after its dependents', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(id, { maxLength: 12 }), fc.integer(), async (ids, seed) => {
      const world = new World({ environment: { seed } });
      const core = faulty(world.memory, () => world.environment.random(), faults);
      const runtime = createRuntime({ state: core, environment: world.environment });
      runtime.register(
        cleanup<Size>({
          name: 'sweeper',
          input: apples.kind(),
          handlers: [
            removeOutputs(crumbs.kind(), ({ metadata }) => ({
              labelQueries: [{ terms: [{ key: 'apple', op: 'equal', values: [metadata.id] }] }],
            })),
          ],
        }),
      );
      const stop = new AbortController();
      const ended = runtime.run(stop.signal);
      for (const name of ['a', 'b', 'c', 'd']) await world.apple(name);
      await world.environment.advance(10_000);
      for (const [index, apple] of ids.entries()) await world.state.create(crumbs.create({ id: `${index}`, labels: { apple }, spec: {} }));
      for (const name of new Set(ids)) {
        await world.state.teardown(apples.pointer(name));
        await world.state.teardownAndDestroy(apples.pointer(name), { signal: ticking(world) });
        const left = (await world.state.list(crumbs.kind())).items.filter(({ metadata }) => metadata.labels.apple === name);
        expect(left).toEqual([]);
        await expect(world.state.get(apples.pointer(name))).rejects.toSatisfy(isNotFoundError);
      }
      stop.abort();
      await world.environment.settle();
      await ended;
      await world.end();
    }),
    { numRuns: 25 },
  );
}, 60_000);

/** Lets time go on while something is waited for. */
function ticking(world: World): AbortSignal {
  const { signal } = new AbortController();
  void world.environment.advance(120_000);
  return signal;
}
