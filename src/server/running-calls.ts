/** Counts the calls that are being answered, so that a stopping server knows when the last one is done. */
export class RunningCalls {
  #running = 0;
  #waiting: (() => void)[] = [];

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    if (this.#running === 0) for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves once no call is being answered. */
  whenNone(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
