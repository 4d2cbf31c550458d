import { addAbortListener } from 'node:events';
import type { SteadystateError } from '../../resource/index.ts';

interface Waiter {
  readonly revision: number;
  readonly settle: (error?: unknown) => void;
}

/** Who waits until readers see a revision. */
export class RevisionWaiters {
  #waiters: Waiter[] = [];

  /** Resolves once `reached` has told of it; rejects with the signal's reason, or what `fail` says. */
  wait(revision: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let listener: Disposable | undefined;
      const waiter: Waiter = {
        revision,
        settle: (error) => {
          listener?.[Symbol.dispose]();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#waiters.push(waiter);
      if (signal !== undefined) {
        listener = addAbortListener(signal, () => {
          this.#waiters = this.#waiters.filter((other) => other !== waiter);
          waiter.settle(signal.reason);
        });
      }
    });
  }

  reached(revision: number): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.revision > revision);
    for (const waiter of waiters) if (waiter.revision <= revision) waiter.settle();
  }

  fail(error: SteadystateError): void {
    for (const { settle } of this.#waiters.splice(0)) settle(error);
  }
}
