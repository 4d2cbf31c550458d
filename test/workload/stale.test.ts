import fc from 'fast-check';
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/environment/index.ts';
import type { ChildRef, GroupKind, Live, PortCall } from '../../src/workload/index.ts';
import { FakePort } from './fake-port.ts';
import { app, boxRef, Harness } from './harness.ts';

/** A port whose reads come from a cache that shows the store as it was some writes ago, unless they are to be fresh. */
class LaggingPort extends FakePort {
  lag = 0;
  readonly #history: ReadonlyMap<string, Live>[] = [];

  /** Remembers how the store looks now. */
  tick(): void {
    this.#history.push(new Map(this.objects));
  }

  #seen({ fresh }: PortCall): ReadonlyMap<string, Live> {
    if (fresh === true || this.lag === 0) return this.objects;
    return this.#history[Math.max(0, this.#history.length - 1 - this.lag)] ?? new Map();
  }

  override async get(ref: ChildRef, call: PortCall = { signal: new AbortController().signal }): Promise<Live | undefined> {
    return this.#seen(call).get(`${ref.kind}.${ref.group}/${ref.namespace}/${ref.name}`);
  }

  override async list(kind: GroupKind, options: PortCall & Parameters<FakePort['list']>[1]): Promise<readonly Live[]> {
    const now = new Map(this.objects);
    const seen = this.#seen(options);
    this.objects.clear();
    for (const [key, live] of seen) this.objects.set(key, live);
    const found = await super.list(kind, options);
    this.objects.clear();
    for (const [key, live] of now) this.objects.set(key, live);
    return found;
  }
}

function lagging(): { readonly harness: Harness; readonly port: LaggingPort } {
  const harness = new Harness();
  const port = new LaggingPort();
  Object.assign(harness, { port });
  port.after = () => port.tick();
  return { harness, port };
}

test('a child that the cache does not show yet is not taken for gone: it is removed before our finalizer goes', async () => {
  const { harness, port } = lagging();
  harness.ask({ a: 1 });
  await harness.reconcile();
  port.user(app, { deleting: true });
  // A new process, whose cache shows the store as it was before anything was made.
  harness.restart();
  port.lag = 1_000;
  await harness.settle();
  port.lag = 0;
  await harness.settle();
  expect(harness.present).toEqual([]);
  expect(harness.view.finalizers).toEqual([]);
});

test('a child whose mark the cache does not show yet is pruned all the same', async () => {
  const { harness, port } = lagging();
  port.put({ ref: boxRef('a'), body: { size: 9 } });
  port.tick();
  harness.ask({ a: 1, b: 1 });
  await harness.reconcile();
  harness.ask({ b: 1 });
  harness.restart();
  port.lag = 1_000;
  await harness.settle();
  port.lag = 0;
  await harness.settle();
  expect(harness.present).toEqual(['b']);
});

test('however far reads lag, no write hits another incarnation or a stranger, and all is well when they catch up', async () => {
  const step = fc.oneof(
    fc.record({ ask: fc.subarray(['a', 'b', 'c']), size: fc.integer({ min: 1, max: 2 }) }),
    fc.record({ lag: fc.integer({ min: 0, max: 12 }) }),
    fc.record({ replace: fc.constantFrom('a', 'b', 'c') }),
    fc.constant({ restart: true as const }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const { harness, port } = lagging();
      const strangers = new Set<string>();
      const intact = (): void => {
        for (const name of strangers)
          expect(port.child(boxRef(name))).toMatchObject({ owner: 'rival', deleting: false, body: { size: 77 } });
      };
      harness.ask({ keep: 1 });
      await harness.settle();
      let asked: Readonly<Record<string, number>> = {};
      for (const each of steps) {
        if ('ask' in each) asked = Object.fromEntries(each.ask.map((name) => [name, each.size]));
        if ('lag' in each) port.lag = each.lag;
        if ('restart' in each) harness.restart();
        if ('replace' in each) {
          // Somebody takes ours away and puts another there.
          port.destroy(boxRef(each.replace));
          port.put({ ref: boxRef(each.replace), owner: 'rival', body: { size: 77 } });
          port.tick();
          strangers.add(each.replace);
        }
        harness.ask({ keep: 1, ...asked });
        for (let runs = 0; runs < 3; runs++) await harness.engine.reconcile(app, port, silentLogger, new AbortController().signal);
        intact();
      }
      port.lag = 0;
      for (const name of strangers) {
        port.destroy(boxRef(name));
        strangers.delete(name);
      }
      await harness.settle();
      expect(harness.present).toEqual([...Object.keys(asked), 'keep'].sort());
      expect(harness.condition('Ready')).toBe('True Ready');
    }),
    { numRuns: 150, seed: 3 },
  );
});
