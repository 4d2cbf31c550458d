import { describe, expect, test } from 'vitest';
import { manualEnvironment } from './manual-environment.ts';

describe('a clock that a test moves', () => {
  test('fires in order of time, equal times first come first served', async () => {
    const environment = manualEnvironment();
    const order: string[] = [];
    environment.after(20, () => order.push('c'));
    environment.after(10, () => order.push('a'));
    environment.after(10, () => {
      order.push('b');
      environment.after(5, () => order.push('nested'));
    });
    environment.after(1000, () => order.push('late'));
    expect(environment.nextTimerMs).toBe(10);
    await environment.advance(25);
    expect(order).toEqual(['a', 'b', 'nested', 'c']);
    expect(environment.elapsed()).toBe(25);
    expect(environment.open.counts()).toEqual({ timer: 1 });
    await environment.advance(1000);
    expect(environment.open.counts()).toEqual({});
    expect(environment.nextTimerMs).toBeUndefined();
  });

  test('moves both clocks, and the wall clock alone', async () => {
    const environment = manualEnvironment({ startMs: Date.UTC(2026, 0, 1) });
    await environment.advance(1500);
    expect(environment.timestamp()).toBe('2026-01-01T00:00:01.500Z');
    environment.setNow(0);
    expect([environment.now(), environment.elapsed()]).toEqual([0, 1500]);
  });

  test('lets promises settle between timers', async () => {
    const environment = manualEnvironment();
    const seen: number[] = [];
    const pump = (async () => {
      for (let round = 0; round < 3; round++) {
        await environment.sleep(10);
        await environment.breathe();
        seen.push(environment.elapsed());
      }
    })();
    await environment.advance(30);
    await pump;
    expect(seen).toEqual([10, 20, 30]);
  });

  test('runs until nothing waits, or says what goes on for ever', async () => {
    const environment = manualEnvironment();
    let rounds = 0;
    const again = (): void => {
      if (++rounds < 5) environment.after(100, again);
    };
    environment.after(100, again);
    await environment.runUntilIdle();
    expect([rounds, environment.elapsed()]).toEqual([5, 500]);
    const forever = (): void => void environment.after(100, forever);
    forever();
    await expect(environment.runUntilIdle(1000)).rejects.toThrow(/1000 ms/);
  });
});

test('chance and ids repeat', () => {
  const draw = (seed: number) => {
    const environment = manualEnvironment({ seed });
    return [environment.random(), environment.random(), environment.id(), environment.id()];
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)[0]).not.toBe(draw(8)[0]);
  expect(draw(1).slice(2)).toEqual(['0'.repeat(31) + 1, '0'.repeat(31) + 2]);
});
