import { addAbortListener } from 'node:events';

/** Wake-ups for one reader; several that it has not seen yet are one. */
export class WakeUp {
  readonly #signal: AbortSignal;
  #pending = false;
  #closed = false;
  #waiting: ((woken: boolean) => void)[] = [];
  readonly #listener: Disposable;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.#listener = addAbortListener(signal, () => this.#tell(false));
  }

  wake(): void {
    this.#pending = true;
    if (this.#waiting.length > 0) this.#tell(true);
  }

  /** Waits for a wake-up; `false` once the signal has aborted. */
  next(): Promise<boolean> {
    if (this.#signal.aborted || this.#closed) return Promise.resolve(false);
    if (this.#pending) {
      this.#pending = false;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): void {
    this.#closed = true;
    this.#listener[Symbol.dispose]();
    this.#tell(false);
  }

  #tell(woken: boolean): void {
    if (woken) this.#pending = false;
    for (const resolve of this.#waiting.splice(0)) resolve(woken);
  }
}
