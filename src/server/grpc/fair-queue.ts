import type { Environment } from '../../environment/index.ts';

/** Calls that are begun before timers and input get their turn again. */
const callsPerTurn = 16;

/**
 * Begins calls so that a connection with many of them does not make the others wait: what does not fit into this turn of
 * the event loop stands in one line per connection, and the lines are served in turns. An idle server begins a call at once.
 */
export class FairQueue {
  readonly #environment: Environment;
  /** In the order in which they are served next. */
  readonly #lines = new Map<object, (() => void)[]>();
  #begun = 0;
  #turning = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  push(owner: object, begin: () => void): void {
    this.#turn();
    if (this.#lines.size === 0 && this.#begun < callsPerTurn) {
      this.#begun++;
      begin();
      return;
    }
    const line = this.#lines.get(owner);
    if (line === undefined) this.#lines.set(owner, [begin]);
    else line.push(begin);
  }

  /** Forgets what waits of an owner. */
  drop(owner: object): void {
    this.#lines.delete(owner);
  }

  #turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    void this.#environment.breathe().then(() => {
      this.#turning = false;
      this.#begun = 0;
      for (const [owner, line] of this.#lines) {
        if (this.#begun >= callsPerTurn) break;
        this.#begun++;
        // To the end of the map, which this loop reaches again.
        this.#lines.delete(owner);
        const begin = line.shift() as () => void;
        if (line.length > 0) this.#lines.set(owner, line);
        begin();
      }
      if (this.#lines.size > 0) this.#turn();
    });
  }
}
