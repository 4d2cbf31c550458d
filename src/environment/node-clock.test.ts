import { afterEach, describe, expect, test, vi } from 'vitest';
import { nodeClock } from './node-clock.ts';
import { OpenThings } from './open-things.ts';

const open = new OpenThings();
const clock = nodeClock(open);

afterEach(() => {
  vi.useRealTimers();
  expect(open.counts()).toEqual({});
});

const inThirtyDaysMs = 30 * 24 * 3600 * 1000;

describe('after', () => {
  test('calls back once, never early', async () => {
    for (const delayMs of [0, 0.4, 1.6, 7.9]) {
      const start = clock.elapsed();
      await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      expect(clock.elapsed() - start).toBeGreaterThanOrEqual(delayMs);
    }
  });

  test('waits longer than a timer of Node can', async () => {
    vi.useFakeTimers();
    const callback = vi.fn();
    clock.after(inThirtyDaysMs, callback);
    await vi.advanceTimersByTimeAsync(inThirtyDaysMs - 1000);
    expect(callback).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1000);
    expect(callback).toHaveBeenCalledOnce();
  });

  test('is cancelled by dispose, also after it was armed anew', async () => {
    vi.useFakeTimers();
    const callback = vi.fn();
    const timer = clock.after(inThirtyDaysMs, callback);
    expect(open.counts()).toEqual({ timer: 1 });
    await vi.advanceTimersByTimeAsync(inThirtyDaysMs - 1000);
    timer[Symbol.dispose]();
    timer[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(inThirtyDaysMs);
    expect(callback).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('refuses what is no delay', () => {
    expect(() => clock.after(Number.NaN, () => {})).toThrow(RangeError);
    expect(() => clock.after(Number.POSITIVE_INFINITY, () => {})).toThrow(RangeError);
  });
});

describe('sleep', () => {
  test('rejects with the reason of the signal, and disarms', async () => {
    const reason = new Error('enough');
    const abort = new AbortController();
    const asleep = clock.sleep(60_000, abort.signal);
    expect(open.counts()).toEqual({ timer: 1 });
    abort.abort(reason);
    await expect(asleep).rejects.toBe(reason);
    await expect(clock.sleep(60_000, abort.signal)).rejects.toBe(reason);
  });

  test('leaves no listener on a signal that lives on', async () => {
    const signal = new AbortController().signal;
    const add = vi.spyOn(signal, 'addEventListener');
    const remove = vi.spyOn(signal, 'removeEventListener');
    await clock.sleep(1, signal);
    expect(add.mock.calls.length).toBeGreaterThan(0);
    expect(remove.mock.calls.length).toBe(add.mock.calls.length);
  });
});

test('the wall clock is told as number and as text', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
  expect(clock.now()).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  expect(clock.timestamp()).toBe('2026-01-02T03:04:05.678Z');
  vi.setSystemTime(Date.UTC(2026, 0, 2, 3, 4, 6));
  expect(clock.timestamp()).toBe('2026-01-02T03:04:06.000Z');
});

test('breathing lets timers and input have their turn', async () => {
  const order: string[] = [];
  const input = new Promise<void>((resolve) => setImmediate(() => resolve(void order.push('input'))));
  await clock.breathe();
  order.push('breathed');
  await input;
  expect(order).toEqual(['input', 'breathed']);
});
