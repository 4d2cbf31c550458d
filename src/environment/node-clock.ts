import type { Environment } from './environment.ts';
import type { OpenCounter } from './open-counter.ts';
import { sleepOn } from './sleep.ts';

/** Longest delay that a timer of Node takes; a larger one fires at once. */
const longestTimerMs = 2 ** 31 - 1;

type Clock = Pick<Environment, 'now' | 'timestamp' | 'elapsed' | 'after' | 'sleep' | 'breathe'>;

/** The machine's clocks and timers. */
export function nodeClock(open: OpenCounter): Clock {
  let stampedAt = Number.NaN;
  let stamp = '';
  const after = (delayMs: number, callback: () => void): Disposable => {
    if (!Number.isFinite(delayMs)) throw new RangeError(`a delay must be finite, found ${delayMs}`);
    const tracked = open.track('timer');
    const end = performance.now() + Math.max(0, delayMs);
    let timer: NodeJS.Timeout;
    // Node counts in whole milliseconds of its own: it may call a little early, and then goes round once more.
    const arm = (): void => {
      const left = end - performance.now();
      if (left <= 0) fire();
      else timer = setTimeout(arm, Math.min(Math.ceil(left), longestTimerMs));
    };
    const fire = (): void => {
      tracked[Symbol.dispose]();
      callback();
    };
    timer = setTimeout(arm, Math.min(Math.max(0, Math.ceil(delayMs)), longestTimerMs));
    return {
      [Symbol.dispose]: () => {
        clearTimeout(timer);
        tracked[Symbol.dispose]();
      },
    };
  };
  return {
    now: () => Date.now(),
    timestamp: () => {
      const now = Date.now();
      if (now !== stampedAt) {
        stampedAt = now;
        stamp = new Date(now).toISOString();
      }
      return stamp;
    },
    elapsed: () => performance.now(),
    after,
    sleep: (delayMs, signal) => sleepOn(after, delayMs, signal),
    breathe: () => new Promise((resolve) => setImmediate(resolve)),
  };
}
