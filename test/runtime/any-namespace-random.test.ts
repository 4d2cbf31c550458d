import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Kind, Pointer } from '../../src/resource/index.ts';
import { isNotFoundError } from '../../src/resource/index.ts';
import { anyNamespace } from '../../src/runtime/index.ts';
import type { AggregatedWatch, CoreState } from '../../src/state/index.ts';
import { listNamespaces } from '../../src/state/index.ts';
import { apples, controllerOf, World } from './world.ts';

const namespaces = ['n0', 'n1', 'n2'];
const ids = ['a', 'b'];

type Step =
  | { readonly kind: 'put' | 'drop' | 'touch'; readonly namespace: string; readonly id: string }
  | { readonly kind: 'settle' | 'breakNamespaces' | 'breakKinds' | 'down' | 'up' }
  | { readonly kind: 'advance'; readonly ms: number };

const about = { namespace: fc.constantFrom(...namespaces), id: fc.constantFrom(...ids) };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), ...about }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('drop' as const), ...about }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('touch' as const), ...about }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 3_000 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('breakNamespaces' as const, 'breakKinds' as const, 'down' as const, 'up' as const) }),
  },
);

/** Watches that break, and for a while cannot be opened. */
class Line {
  readonly #open = new Map<AggregatedWatch, 'namespaces' | 'kind'>();
  down = false;

  wrap(core: CoreState): CoreState {
    return new Proxy(core, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function') return member;
        if (key !== 'watchNamespaces' && key !== 'watchKindAggregated') return member.bind(target);
        return async (what: string | Kind, call: { readonly signal: AbortSignal }) => {
          if (this.down) throw new Error('the line is down');
          const watch = (await member.call(target, what, call)) as AggregatedWatch;
          this.#open.set(watch, key === 'watchNamespaces' ? 'namespaces' : 'kind');
          call.signal.addEventListener('abort', () => this.#open.delete(watch));
          return watch;
        };
      },
    });
  }

  async break(which: 'namespaces' | 'kind'): Promise<void> {
    for (const [watch, kind] of [...this.#open]) {
      if (kind !== which) continue;
      this.#open.delete(watch);
      await watch[Symbol.asyncDispose]();
    }
  }
}

test('whatever comes, goes and breaks in whatever order: in the end each resource was looked at as it is, and no watch is left over', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const line = new Line();
      const world = new World({ wrap: (core) => line.wrap(core) });
      const seen = new Map<string, string>();
      await world.start(
        controllerOf({
          inputs: [{ namespace: anyNamespace, type: apples.type, kind: 'primary' }],
          outputs: [],
          async reconcile(context, { pointer }) {
            const name = `${pointer.namespace}/${pointer.id}`;
            try {
              seen.set(name, (await context.get(pointer)).metadata.version);
            } catch (error) {
              if (!isNotFoundError(error)) throw error;
              seen.delete(name);
            }
          },
        }),
      );
      const attempt = (work: Promise<unknown>): Promise<unknown> => work.catch(() => {});
      for (const each of steps) {
        if (each.kind === 'put') await attempt(world.memory.create(apples.create({ ...each, spec: {} })));
        else if (each.kind === 'drop') await attempt(world.memory.destroy(apples.pointer(each.id, each.namespace)));
        else if (each.kind === 'touch')
          await attempt(world.memory.get(apples.pointer(each.id, each.namespace)).then((found) => world.memory.update(found)));
        else if (each.kind === 'settle') await world.environment.settle();
        else if (each.kind === 'advance') await world.environment.advance(each.ms);
        else if (each.kind === 'breakNamespaces') await line.break('namespaces');
        else if (each.kind === 'breakKinds') await line.break('kind');
        else line.down = each.kind === 'down';
      }
      line.down = false;
      await world.environment.advance(120_000);
      const stored = new Map<string, string>();
      const places = await listNamespaces(world.memory, apples.type);
      for (const namespace of places)
        for (const { metadata } of (await world.memory.list(apples.kind(namespace))).items) stored.set(textOf(metadata), metadata.version);
      expect([...seen].sort()).toEqual([...stored].sort());
      // One for the namespaces, one for each that has some.
      expect(world.environment.open.counts().watch).toBe(places.length + 1);
      await world.end();
    }),
    { numRuns: 100 },
  );
});

function textOf({ namespace, id }: Pointer): string {
  return `${namespace}/${id}`;
}
