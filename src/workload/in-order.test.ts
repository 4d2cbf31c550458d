import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { childConcurrency, inOrder, inPool } from './in-order.ts';
import type { Desired } from './port.ts';

const child = (name: string, dependsOn?: readonly string[]): Desired => ({
  ref: { group: 'g', kind: 'K', version: '', namespace: 'n', name },
  labels: {},
  annotations: {},
  body: {},
  name,
  ...(dependsOn && { dependsOn }),
});

/** Handles children with a promise each that the test settles. */
function handling(): {
  readonly started: string[];
  readonly end: (name: string, error?: Error) => Promise<void>;
  readonly handle: (child: Desired) => Promise<void>;
} {
  const started: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  return {
    started,
    end: async (name, error) => {
      ends.get(name)?.(error);
      await new Promise((resolve) => setImmediate(resolve));
    },
    handle: ({ name = '' }) => {
      started.push(name);
      return new Promise((resolve, reject) => ends.set(name, (error) => (error === undefined ? resolve() : reject(error))));
    },
  };
}

describe('inOrder', () => {
  test('without dependsOn: one after another, and each knows all before it', async () => {
    const seen: string[] = [];
    await inOrder([child('a'), child('b'), child('c')], async ({ name = '' }, before) => void seen.push(`${name} after ${before.join()}`));
    expect(seen).toEqual(['a after ', 'b after a', 'c after a,b']);
  });

  test('with dependsOn: as soon as what comes before was handled, up to eight at once, first come first served', async () => {
    const { started, end, handle } = handling();
    const many = Array.from({ length: 10 }, (_, index) => child(`m${index}`, []));
    const done = inOrder([...many, child('last', ['m0'])], handle);
    expect(started).toHaveLength(childConcurrency);
    await end('m0');
    expect(started).toEqual([...many.slice(0, 9).map(({ name }) => name)]);
    await end('m1');
    await end('m2');
    expect(started.slice(-2)).toEqual(['m9', 'last']);
    for (const name of started) await end(name);
    await done;
  });

  test('one that is slow holds back only those behind it', async () => {
    const { started, end, handle } = handling();
    const done = inOrder([child('slow', []), child('fast', []), child('after', ['fast']), child('blocked', ['slow'])], handle);
    await end('fast');
    expect(started).toEqual(['slow', 'fast', 'after']);
    await end('after');
    await end('slow');
    await end('blocked');
    await done;
    expect(started).toEqual(['slow', 'fast', 'after', 'blocked']);
  });

  test('after a rejection nothing is started', async () => {
    const { started, end, handle } = handling();
    const done = inOrder([child('a', []), child('b', ['a'])], handle);
    await Promise.all([expect(done).rejects.toThrow('stop'), end('a', new Error('stop'))]);
    expect(started).toEqual(['a']);
  });

  test('every child once, never before what it depends on, for any graph without a circle', async () => {
    const graph = fc
      .integer({ min: 0, max: 25 })
      .chain((size) =>
        fc.tuple(
          ...Array.from({ length: size }, (_, index) => fc.subarray(Array.from({ length: index }, (_unused, before) => `c${before}`))),
        ),
      );
    await fc.assert(
      fc.asyncProperty(graph, async (dependencies) => {
        const children = dependencies.map((dependsOn, index) => child(`c${index}`, dependsOn));
        const handled = new Set<string>();
        let running = 0;
        await inOrder([...children].reverse(), async ({ name = '', dependsOn = [] }) => {
          expect(++running).toBeLessThanOrEqual(childConcurrency);
          expect(handled.has(name)).toBe(false);
          for (const before of dependsOn) expect(handled.has(before)).toBe(true);
          await Promise.resolve();
          handled.add(name);
          running--;
        });
        expect(handled.size).toBe(children.length);
      }),
      { numRuns: 50 },
    );
  });
});

test('inPool handles all, in order, a few at once', async () => {
  const seen: number[] = [];
  let running = 0;
  let most = 0;
  await inPool([...Array(30).keys()], async (item) => {
    most = Math.max(most, ++running);
    seen.push(item);
    await Promise.resolve();
    running--;
  });
  expect(seen).toEqual([...Array(30).keys()]);
  expect(most).toBe(childConcurrency);
});
