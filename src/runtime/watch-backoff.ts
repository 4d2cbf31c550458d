import type { Environment } from '../environment/index.ts';

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
