import type { Environment } from '../environment/index.ts';

/** Watches that send before other calls get their turn. */
const watchesPerTurn = 1024;

/**
 * Calls back in the next turn of the event loop, so that a watch sends what one turn brings as one message instead of each
 * event by itself. Watches that were woken together stay together.
 */
export class Turns {
  readonly #environment: Pick<Environment, 'breathe'>;
  #waiting: (() => void)[] = [];

  constructor(environment: Pick<Environment, 'breathe'>) {
    this.#environment = environment;
  }

  /** `callback` must not throw. */
  next(callback: () => void): void {
    if (this.#waiting.push(callback) === 1) this.#arm();
  }

  #arm(): void {
    void this.#environment.breathe().then(() => {
      const now = this.#waiting;
      this.#waiting = now.splice(watchesPerTurn);
      if (this.#waiting.length > 0) this.#arm();
      for (const callback of now) callback();
    });
  }
}
