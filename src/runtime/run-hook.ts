import type { Environment, Logger } from '../environment/index.ts';

const firstDelayMs = 500;
const maxDelayMs = 60_000;
const factor = 1.5;
/** After so long a run the back-off starts anew, milliseconds. */
const goodRunMs = 60_000;

/** The waits between the starts of what fails again and again: 500 ms, ×1.5, at most 60 s, each ±50 %. */
export class RestartBackoff {
  readonly #environment: Environment;
  #delayMs = firstDelayMs;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  reset(): void {
    this.#delayMs = firstDelayMs;
  }

  /** How long to wait after a run that lasted `ranMs`. */
  next(ranMs: number): number {
    if (ranMs >= goodRunMs) this.reset();
    const delayMs = this.#delayMs * (0.5 + this.#environment.random());
    this.#delayMs = Math.min(this.#delayMs * factor, maxDelayMs);
    return Math.min(delayMs, maxDelayMs);
  }
}

export interface KeepRunningOptions {
  readonly environment: Environment;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** For messages. */
  readonly what: string;
  readonly backoff?: RestartBackoff;
  run(): Promise<void>;
  /** Told of each failure. */
  readonly onFailure?: (error: unknown) => void;
}

/**
 * Runs something until it returns, or the signal aborts; starts it again when it throws. An error that comes of another signal than
 * this one is a failure as any other. Never rejects.
 */
export async function keepRunning(options: KeepRunningOptions): Promise<void> {
  const { environment, log, signal, what } = options;
  const backoff = options.backoff ?? new RestartBackoff(environment);
  while (!signal.aborted) {
    const start = environment.elapsed();
    try {
      await options.run();
      return;
    } catch (error) {
      if (signal.aborted) return;
      options.onFailure?.(error);
      const delayMs = backoff.next(environment.elapsed() - start);
      log.log('warn', `${what} failed; starting it again`, { error, delayMs: Math.round(delayMs) });
      await environment.sleep(delayMs, signal).catch(() => {});
    }
  }
}
