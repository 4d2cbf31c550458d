import type { Environment } from '../environment/index.ts';
import { invalid } from '../resource/index.ts';

/** How much a controller may write. */
export interface WriteLimit {
  /** Writes a second, on average. */
  readonly perSecond: number;
  /** So many at once after a quiet time. @default the writes of one second, at least 1 */
  readonly burst?: number;
}

/** Throws Invalid when a limit is no good. */
export function checkWriteLimit({ perSecond, burst }: WriteLimit): void {
  if (!Number.isFinite(perSecond) || perSecond <= 0)
    throw invalid([{ path: 'writeLimit.perSecond', message: `expected a finite number above 0, found ${perSecond}` }]);
  if (burst !== undefined && (!Number.isFinite(burst) || burst < 1))
    throw invalid([{ path: 'writeLimit.burst', message: `expected a finite number from 1, found ${burst}` }]);
}

/** A bucket of permits that refills with time. What is over the limit waits, first come first served. */
export class WriteLimiter {
  readonly #environment: Environment;
  readonly #perMs: number;
  readonly #burst: number;
  #permits: number;
  #at: number;
  /** When the last of those that wait gets through, on elapsed time. */
  #lastDueAt = 0;

  /** The limit must be a good one. */
  constructor(environment: Environment, { perSecond, burst = Math.max(1, perSecond) }: WriteLimit) {
    this.#environment = environment;
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#permits = burst;
    this.#at = environment.elapsed();
  }

  /** Waits for a permit; rejects with the signal's reason. `undefined`: there was one. */
  acquire(signal: AbortSignal): Promise<void> | undefined {
    const now = this.#environment.elapsed();
    this.#permits = Math.min(this.#burst, this.#permits + (now - this.#at) * this.#perMs);
    this.#at = now;
    this.#permits--;
    if (this.#permits >= 0) return undefined;
    this.#lastDueAt = Math.max(this.#lastDueAt, now - this.#permits / this.#perMs);
    return this.#environment.sleep(this.#lastDueAt - now, signal);
  }
}
