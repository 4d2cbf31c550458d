import type { OpenCounter } from './open-counter.ts';

/** The counter that every environment uses. */
export class OpenThings implements OpenCounter {
  readonly #counts = new Map<string, number>();

  track(kind: string): Disposable {
    this.#add(kind, 1);
    let open = true;
    return {
      [Symbol.dispose]: () => {
        if (!open) return;
        open = false;
        this.#add(kind, -1);
      },
    };
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].filter(([, count]) => count !== 0));
  }

  #add(kind: string, amount: number): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + amount);
  }
}
