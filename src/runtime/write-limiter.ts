import type { Environment } from '../environment/index.ts';
import { invalid } from '../resource/index.ts';

/** How much a controller may write. */
export interface WriteLimit {
  /** Writes a second, on average. @default no limit */
  readonly perSecond?: number;
  /** So many writes at once after a quiet time. @default the writes of one second, at least 1 */
  readonly burst?: number;
  /** Bytes of specs a second, on average, as JSON would have them; what is saved up is at most one second's. @default no limit */
  readonly bytesPerSecond?: number;
}

/** Throws Invalid when a limit is no good. */
export function checkWriteLimit({ perSecond, burst, bytesPerSecond }: WriteLimit): void {
  for (const [path, value] of Object.entries({ perSecond, bytesPerSecond })) {
    if (value !== undefined && (!Number.isFinite(value) || value <= 0))
      throw invalid([{ path: `writeLimit.${path}`, message: `expected a finite number above 0, found ${value}` }]);
  }
  if (burst !== undefined && (!Number.isFinite(burst) || burst < 1))
    throw invalid([{ path: 'writeLimit.burst', message: `expected a finite number from 1, found ${burst}` }]);
}

/** What refills with time, up to a burst; below zero it is a debt. */
class Bucket {
  readonly #perMs: number;
  readonly #burst: number;
  #level: number;
  #at: number;

  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#level = burst;
    this.#at = now;
  }

  take(amount: number, now: number): void {
    this.#level = Math.min(this.#burst, this.#level + (now - this.#at) * this.#perMs) - amount;
    this.#at = now;
  }

  /** How long until the debt is paid, milliseconds. */
  get debtMs(): number {
    return this.#level >= 0 ? 0 : -this.#level / this.#perMs;
  }
}

/** Lets a controller write so much; what is over the limit waits, first come first served. The limit must be a good one. */
export class WriteLimiter {
  readonly #environment: Environment;
  readonly #writes: Bucket | undefined;
  readonly #bytes: Bucket | undefined;
  /** When the last of those that wait gets through, on elapsed time. */
  #lastDueAt = 0;

  constructor(environment: Environment, { perSecond, burst, bytesPerSecond }: WriteLimit) {
    const now = environment.elapsed();
    this.#environment = environment;
    this.#writes = perSecond === undefined ? undefined : new Bucket(perSecond, burst ?? Math.max(1, perSecond), now);
    this.#bytes = bytesPerSecond === undefined ? undefined : new Bucket(bytesPerSecond, bytesPerSecond, now);
  }

  /** Whether bytes are to be counted at all. */
  get countsBytes(): boolean {
    return this.#bytes !== undefined;
  }

  /** Before a write: waits for its turn; rejects with the signal's reason. `undefined`: it may go on. */
  acquire(signal: AbortSignal): Promise<void> | undefined {
    const now = this.#environment.elapsed();
    this.#writes?.take(1, now);
    this.#bytes?.take(0, now);
    const waitMs = Math.max(this.#writes?.debtMs ?? 0, this.#bytes?.debtMs ?? 0);
    if (waitMs === 0 && this.#lastDueAt <= now) return undefined;
    this.#lastDueAt = Math.max(this.#lastDueAt, now + waitMs);
    return this.#environment.sleep(this.#lastDueAt - now, signal);
  }

  /** After a write: its size is known only then, and paid for by those that come later. */
  spend(bytes: number): void {
    this.#bytes?.take(bytes, this.#environment.elapsed());
  }
}
