import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ResourceInput, ResourceQuery } from '../../resource/index.ts';
import { matchesQuery } from '../../resource/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import { Broker } from './index.ts';

const environment = manualEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };
const memory = () => new Broker({ environment, storeId: environment.id(), capabilities });

const equal = (key: string, ...values: string[]): ResourceQuery => ({
  labelQueries: [{ terms: [{ key, op: values.length === 1 ? 'equal' : 'in', values }] }],
});

const queries: readonly ResourceQuery[] = [
  { idQuery: '^a' },
  { idQuery: '^a-1$' },
  { idQuery: '^a-1?$' },
  { idQuery: '^a-1*' },
  { idQuery: '^a-1+2' },
  { idQuery: '^a-1{2}' },
  { idQuery: '^a\\.b' },
  { idQuery: '^a\\.?b' },
  { idQuery: '^a|1' },
  { idQuery: '^(a|b)-1' },
  { idQuery: '^a.1$' },
  { idQuery: '^\u{1f600}' },
  { idQuery: '1$' },
  { idQuery: '^$' },
  { idQuery: '^' },
  equal('color', 'red'),
  equal('color', 'red', 'blue', 'red'),
  equal('color', 'none'),
  equal('size', '1'),
  { ...equal('color', 'red'), idQuery: '^a' },
  { labelQueries: [...(equal('color', 'red').labelQueries ?? []), ...(equal('size', '1').labelQueries ?? [])] },
  { labelQueries: [...(equal('color', 'red').labelQueries ?? []), { terms: [{ key: 'size', op: 'exists', invert: true }] }] },
  { labelQueries: [{ terms: [{ key: 'color', op: 'equal', values: ['red'], invert: true }] }] },
  { labelQueries: [{ terms: [{ key: 'toString', op: 'equal', values: ['red'] }] }] },
];

const ids = ['a', 'a-', 'a-1', 'a-11', 'a-112', 'a-2', 'a.b', 'ab', 'b-1', '1', 'ä', '\u{1f600}', '\u{1f600}1', '\uffee'];

describe('a list with a query', () => {
  test('finds by order and by index what a walk over all finds, whatever was written meanwhile', async () => {
    const step = fc.record({
      id: fc.constantFrom(...ids),
      color: fc.option(fc.constantFrom('red', 'blue', 'green'), { nil: undefined }),
      size: fc.option(fc.constantFrom('1', '2'), { nil: undefined }),
      gone: fc.boolean(),
      query: fc.nat(queries.length - 1),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        await using store = memory();
        // Enough others that looking up is less than walking.
        for (let index = 0; index < 60; index++) await store.create({ metadata: { ...kind, id: `other-${index}` }, spec: null });
        for (const { id, color, size, gone, query } of steps) {
          const labels = { ...(color !== undefined && { color }), ...(size !== undefined && { size }) };
          const input: ResourceInput = { metadata: { ...kind, id, labels }, spec: null };
          const there = (await store.list(kind)).items.find((item) => item.metadata.id === id);
          if (there === undefined) await store.create(input);
          else if (gone) await store.destroy({ ...kind, id });
          else await store.update(input, { currentVersion: there.metadata.version });
          const found = await store.list(kind, queries[query]);
          const all = (await store.list(kind)).items.filter((item) => matchesQuery(item, queries[query] as ResourceQuery));
          expect(found.items).toEqual(all);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('asks for more keys than are indexed at once', async () => {
    await using store = memory();
    const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
    for (const key of keys) await store.create({ metadata: { ...kind, id: key, labels: { [key]: 'yes' } }, spec: null });
    for (const key of [...keys, ...keys]) {
      const { items } = await store.list(kind, equal(key, 'yes'));
      expect(items.map((item) => item.metadata.id)).toEqual([key]);
    }
  });
});

describe('a writer without a pause', () => {
  test('lets timers and input have their turn', async () => {
    await using store = memory();
    let turns = 0;
    let writing = true;
    const ticking = (async () => {
      for (; writing; turns++) await environment.breathe();
    })();
    for (let index = 0; index < 2_000; index++) await store.create({ metadata: { ...kind, id: `thing-${index}` }, spec: null });
    writing = false;
    await ticking;
    expect(turns).toBeGreaterThanOrEqual(7);
  });

  test('is followed by many watchers in batches, each complete and in order', async () => {
    await using store = memory();
    const writes = 200;
    const watches = await Promise.all(Array.from({ length: 1_500 }, () => store.watchKindAggregated(kind)));
    const readers = watches.map(async (watch) => {
      const revisions: number[] = [];
      let batches = 0;
      for await (const batch of watch) {
        batches++;
        for (const event of batch) revisions.push(event.revision as number);
        if (revisions.length >= writes) break;
      }
      return { revisions, batches };
    });
    for (let index = 0; index < writes; index++) await store.create({ metadata: { ...kind, id: `thing-${index}` }, spec: null });
    const expected = Array.from({ length: writes }, (_, index) => index + 1);
    for (const { revisions, batches } of await Promise.all(readers)) {
      expect(revisions).toEqual(expected);
      expect(batches).toBeLessThan(20);
    }
  });
});
