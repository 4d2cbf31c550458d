import type { Environment, Logger } from '../environment/index.ts';
import { errorCode } from '../resource/index.ts';

const firstDelayMs = 100;
const maxDelayMs = 30_000;
/** A watch that lasted this long was a good one, milliseconds. */
const steadyMs = 5_000;

/** How long to wait before a broken watch is made anew. */
export class WatchBackoff {
  readonly #environment: Environment;
  #delayMs = firstDelayMs;
  #began = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** What the next pause is made from, milliseconds. */
  get delayMs(): number {
    return this.#delayMs;
  }

  begin(): void {
    this.#began = this.#environment.elapsed();
  }

  /** The watch has shown that it works. */
  reset(): void {
    this.#delayMs = firstDelayMs;
  }

  /** Resolves after the pause, or when the signal aborts. */
  async pause(signal: AbortSignal): Promise<void> {
    if (this.#environment.elapsed() - this.#began >= steadyMs) this.reset();
    // Half of the time is fixed, half by chance, so that many do not come back at once.
    await this.#environment.sleep(this.#delayMs * (0.5 + this.#environment.random() / 2), signal).catch(() => {});
    this.#delayMs = Math.min(this.#delayMs * 2, maxDelayMs);
  }
}

export interface KeepWatchingOptions {
  readonly backoff: WatchBackoff;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** What ends with the store, and what fails, for messages. */
  readonly wakes: () => string;
  readonly what: () => string;
  /** Watches until that ends; resolves with why, if it is known. */
  watch(): Promise<unknown>;
  /** Puts right what is its own of a failure, which is then no more than a reason to watch anew. */
  readonly mend?: (failure: unknown) => boolean;
  /** Whether there is something to watch still. */
  readonly goesOn?: () => boolean;
}

/** Watches again and again, with back-off, until the signal aborts, the store is closed, or nothing is left. Never rejects. */
export async function keepWatching(options: KeepWatchingOptions): Promise<void> {
  const { backoff, log, signal } = options;
  while (!signal.aborted && options.goesOn?.() !== false) {
    backoff.begin();
    let failure: unknown;
    try {
      failure = await options.watch();
    } catch (error) {
      failure = error;
    }
    if (signal.aborted) return;
    if (errorCode(failure) === 'Closed') {
      log.log('warn', `the store was closed: nothing wakes for ${options.wakes()} any more`, {});
      return;
    }
    if (options.mend?.(failure) !== true)
      log.log('warn', `the watch of ${options.what()} failed; trying again`, { error: failure, delayMs: backoff.delayMs });
    await backoff.pause(signal);
  }
}
