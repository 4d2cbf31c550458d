import type { Environment } from '../environment/index.ts';

/** Work gives way to timers and input after this long, milliseconds. */
const breathAfterMs = 5;

/** Sees to it that timers and input get their turn, however many controllers work. */
export class Breather {
  readonly #environment: Environment;
  #last: number;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#last = environment.elapsed();
  }

  /** Between two pieces of work: `undefined`, or what to wait for. */
  pause(): Promise<void> | undefined {
    if (this.#environment.elapsed() - this.#last < breathAfterMs) return undefined;
    return this.#environment.breathe().then(() => {
      this.#last = this.#environment.elapsed();
    });
  }
}
