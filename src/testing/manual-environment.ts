import type { Environment } from '../environment/index.ts';
import { MemoryMetrics, nodeEnvironment, noTracer, OpenThings, silentLogger, sleepOn } from '../environment/index.ts';

export interface ManualEnvironment extends Environment {
  readonly metrics: MemoryMetrics;
  /** Moves the clocks on and fires what is due, in order of time, equal times first come first served. Lets promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Fires timers until none is armed. Rejects after `limitMs` of its time: something goes on for ever. @default 3_600_000 */
  runUntilIdle(limitMs?: number): Promise<void>;
  /** Lets promises settle without moving the clock. */
  settle(): Promise<void>;
  /** Milliseconds until the next timer; `undefined`: none is armed. */
  readonly nextTimerMs: number | undefined;
  /** Moves the wall clock only, as an administrator would. */
  setNow(ms: number): void;
}

interface ManualTimer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  readonly tracked: Disposable;
}

/** An environment whose time stands still until a test moves it, and whose chance is repeatable. Files, network and processes are the real ones unless given. */
export function manualEnvironment(
  options: Partial<Environment> & { readonly seed?: number; readonly startMs?: number } = {},
): ManualEnvironment {
  const open = new OpenThings();
  const real = nodeEnvironment();
  const timers = new Set<ManualTimer>();
  let elapsed = 0;
  let wall = options.startMs ?? Date.UTC(2026, 0, 1);
  let order = 0;
  let seed = options.seed ?? 1;
  let ids = 0;
  const after = (delayMs: number, callback: () => void): Disposable => {
    if (!Number.isFinite(delayMs)) throw new RangeError(`a delay must be finite, found ${delayMs}`);
    const timer: ManualTimer = { at: elapsed + Math.max(0, delayMs), order: order++, callback, tracked: open.track('timer') };
    timers.add(timer);
    return {
      [Symbol.dispose]: () => {
        timers.delete(timer);
        timer.tracked[Symbol.dispose]();
      },
    };
  };
  const next = (): ManualTimer | undefined => {
    let first: ManualTimer | undefined;
    for (const timer of timers)
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    return first;
  };
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const advance = async (ms: number): Promise<void> => {
    const end = elapsed + ms;
    await settle();
    for (let timer = next(); timer !== undefined && timer.at <= end; timer = next()) {
      wall += timer.at - elapsed;
      elapsed = timer.at;
      timers.delete(timer);
      timer.tracked[Symbol.dispose]();
      timer.callback();
      await settle();
    }
    wall += end - elapsed;
    elapsed = end;
  };
  return {
    now: () => wall,
    timestamp: () => new Date(wall).toISOString(),
    elapsed: () => elapsed,
    after,
    sleep: (delayMs, signal) => sleepOn(after, delayMs, signal),
    breathe: () => new Promise((resolve) => setImmediate(resolve)),
    random: () => {
      // A linear congruential generator: repeatable, and good enough for jitter.
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed / 2 ** 32;
    },
    id: () => (++ids).toString(16).padStart(32, '0'),
    processes: real.processes,
    files: real.files,
    network: real.network,
    log: silentLogger,
    tracer: noTracer,
    open,
    ...options,
    metrics: options.metrics instanceof MemoryMetrics ? options.metrics : new MemoryMetrics(),
    settle,
    advance,
    async runUntilIdle(limitMs = 3_600_000) {
      const end = elapsed + limitMs;
      await settle();
      for (let timer = next(); timer !== undefined; timer = next()) {
        if (timer.at > end) throw new Error(`timers are armed still after ${limitMs} ms`);
        await advance(timer.at - elapsed);
      }
    },
    get nextTimerMs() {
      const timer = next();
      return timer === undefined ? undefined : timer.at - elapsed;
    },
    setNow(ms) {
      wall = ms;
    },
  };
}
