import type { Environment, Logger } from '../environment/index.ts';
import type { CoreState } from '../state/index.ts';
import type { Breather } from './breather.ts';
import type { Cache } from './cache.ts';
import type { ContextOptions } from './context.ts';
import type { AnyController } from './controller.ts';
import type { Feeds } from './feeds.ts';
import type { ControllerStatus } from './runtime.ts';
import type { WriteLimiter } from './write-limiter.ts';

/** What a runner of a controller gets from its runtime. */
export interface RunnerOptions {
  readonly environment: Environment;
  readonly core: CoreState;
  /** The controller's. */
  readonly log: Logger;
  readonly feeds: Feeds;
  readonly cache: Cache;
  readonly breather: Breather;
  readonly maxBackoffMs: number;
  /** Workers, unless the controller says otherwise. */
  readonly concurrency: number;
  readonly limiter: WriteLimiter | undefined;
}

/** Runs one controller. */
export interface Runner {
  readonly controller: AnyController;
  /** Until the signal aborts and what was in flight has ended. `synced`: it has been told all that was there. Never rejects. */
  run(signal: AbortSignal, hardSignal: AbortSignal, synced: () => void): Promise<void>;
  /** The controller's hook, if it has one. */
  shutdown(signal: AbortSignal): Promise<void>;
  /** Nothing new is begun from here on. */
  stopTaking(): void;
  /** What runs now, in words. */
  inFlight(): readonly string[];
  status(): ControllerStatus;
}

/** What the contexts of one controller have in common. */
export function contextOptions(
  own: Pick<ContextOptions, 'name' | 'limits' | 'instruments'>,
  { core, environment, log, cache, breather, limiter }: RunnerOptions,
): Omit<ContextOptions, 'signal' | 'hardSignal'> {
  return { ...own, core, environment, log, cache, breather, limiter };
}
