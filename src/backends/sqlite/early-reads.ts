import type { Environment } from '../../environment/index.ts';
import type { Pointer, Resource } from '../../resource/index.ts';
import { pointerText } from '../../resource/index.ts';
import { decodeStored } from './decode-stored.ts';
import type { FoundRow } from './protocol.ts';
import type { StoreWorker } from './store-worker.ts';

interface Asked {
  readonly pointer: Pointer;
  readonly resolve: (resource: Resource | undefined) => void;
}

/**
 * Gets that come while the resources of a large store are still being read. The thread looks for them by a walk over the file, all that
 * are asked for together in one; then it reads on for as long as that took, so that the end comes twice as late at worst.
 */
export class EarlyReads {
  readonly #environment: Environment;
  readonly #worker: StoreWorker;
  readonly #file: string;
  #asked: Asked[] = [];
  #asking = false;
  #pause: Disposable | undefined;
  #over = false;

  constructor(environment: Environment, worker: StoreWorker, file: string) {
    this.#environment = environment;
    this.#worker = worker;
    this.#file = file;
  }

  /** `undefined`: only all of it tells. Rejects with Corrupt for a record that cannot be right. */
  find(pointer: Pointer): Promise<Resource | undefined> {
    if (this.#over) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#asked.push({ pointer, resolve });
      if (!this.#asking) void this.#ask();
    });
  }

  /** All is read: who still waits looks there. */
  end(): void {
    this.#over = true;
    this.#pause?.[Symbol.dispose]();
    for (const { resolve } of this.#asked) resolve(undefined);
    this.#asked = [];
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    // Those of one turn go together.
    await Promise.resolve();
    const asked = this.#asked;
    this.#asked = [];
    const start = this.#environment.elapsed();
    const found = new Map<string, FoundRow>();
    try {
      const rows = await this.#worker.call<readonly FoundRow[]>({ call: 'find', pointers: asked.map(({ pointer }) => pointer) });
      for (const row of rows) found.set(pointerText(row.pointer), row);
    } catch {
      // What is wrong with the file ends the reading of all, too, which tells it.
    }
    for (const { pointer, resolve } of asked) resolve(this.#decode(pointer, found.get(pointerText(pointer))));
    if (this.#over) return;
    this.#pause = this.#environment.after(this.#environment.elapsed() - start, () => {
      this.#asking = false;
      if (this.#asked.length > 0) void this.#ask();
    });
  }

  #decode(pointer: Pointer, row: FoundRow | undefined): Resource | undefined {
    if (row === undefined) return undefined;
    const { namespace, type, id } = pointer;
    try {
      return decodeStored(this.#file, { kind: { namespace, type }, id, uid: row.uid, version: row.version }, row.record);
    } catch {
      // As above: a get of it says what it is.
      return undefined;
    }
  }
}
