import { describe, expect, test, vi } from 'vitest';
import type { StoreFiles, Verdict } from './damage.ts';
import { DamageBench, flipped } from './damage.ts';

/** The stores here are complete and small: so large at most. */
const cap = 32 * 1024;
/** Tens of thousands of openings, on a machine that others use too. */
vi.setConfig({ testTimeout: 1_800_000 });

interface Tally {
  readonly refused: number;
  readonly right: number;
}

/** Each of the attempts in turn; throws at the first that is wrong. */
async function sweep(
  bench: DamageBench,
  whole: StoreFiles,
  attempts: Iterable<readonly [name: string, files: StoreFiles]>,
): Promise<Tally> {
  const expected = bench.expected(whole);
  const tally = { refused: 0, right: 0 };
  for (const [name, files] of attempts) {
    const verdict: Verdict = await bench.verdict(files, expected);
    if (verdict !== 'refused' && verdict !== 'right') throw new Error(`${name}: ${verdict}`);
    tally[verdict]++;
  }
  return tally;
}

function* eachByte(whole: StoreFiles, part: keyof StoreFiles): Generator<readonly [string, StoreFiles]> {
  const bytes = whole[part] as Buffer;
  expect(bytes.length).toBeLessThan(cap);
  for (let place = 0; place < bytes.length; place++) {
    for (const mask of [1 << (place % 8), 0xff])
      yield [`byte ${place} of ${part} ^ ${mask}`, { ...whole, [part]: flipped(bytes, place, mask) }];
  }
}

function* eachLength(whole: StoreFiles, part: keyof StoreFiles): Generator<readonly [string, StoreFiles]> {
  const bytes = whole[part] as Buffer;
  for (let length = 0; length < bytes.length; length++) yield [`${part} cut at ${length}`, { ...whole, [part]: bytes.subarray(0, length) }];
}

describe('a closed store', () => {
  test('every byte of it, one bit and all bits changed', async () => {
    using bench = new DamageBench();
    const whole = bench.make('closed', 4);
    const { refused, right } = await sweep(bench, whole, eachByte(whole, 'main'));
    expect(refused + right).toBe(2 * whole.main.length);
    expect(refused).toBeGreaterThan(2000);
  });

  test('cut off at every offset', async () => {
    using bench = new DamageBench();
    const whole = bench.make('closed', 4);
    const lengths = [...eachLength(whole, 'main')];
    // Nothing at all is a new store.
    expect(await sweep(bench, whole, lengths.slice(1))).toEqual({ refused: whole.main.length - 1, right: 0 });
  });
});

describe('a store that was killed', () => {
  test.each(['main', 'wal'] as const)('every byte of its %s, one bit and all bits changed', async (part) => {
    using bench = new DamageBench();
    const whole = bench.make('crashed', 2);
    const { refused, right } = await sweep(bench, whole, eachByte(whole, part));
    expect(refused + right).toBe(2 * (whole[part] as Buffer).length);
    // What stands in the log too is not read from the file.
    expect(refused).toBeGreaterThan(part === 'wal' ? 5000 : -1);
  });

  test.each(['main', 'wal'] as const)('its %s cut off at every offset, or gone', async (part) => {
    using bench = new DamageBench();
    const whole = bench.make('crashed', 2);
    const { refused } = await sweep(bench, whole, eachLength(whole, part));
    expect(refused).toBeGreaterThan(0);
    if (part === 'wal') expect(await sweep(bench, whole, [['no log', { ...whole, wal: undefined }]])).toEqual({ refused: 1, right: 0 });
  });

  test('the notes beside it are a help only: damaged or gone, it is right', async () => {
    using bench = new DamageBench();
    const whole = bench.make('crashed', 2);
    const { length } = whole.holder as Buffer;
    expect(await sweep(bench, whole, eachByte(whole, 'holder'))).toEqual({ refused: 0, right: 2 * length });
    expect(await sweep(bench, whole, eachLength(whole, 'holder'))).toEqual({ refused: 0, right: length });
    expect(await sweep(bench, whole, [['no notes', { ...whole, holder: undefined }]])).toEqual({ refused: 0, right: 1 });
  });
});
