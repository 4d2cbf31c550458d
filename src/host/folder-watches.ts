import type { Environment } from '../environment/index.ts';

interface Watched {
  readonly identity: string;
  readonly handle: Disposable;
  readonly keys: Set<string>;
}

/** A folder in which much happens is told of this often at most, milliseconds; the first change is told at once. */
const quietMs = 500;

/** One watch per folder for all who care about something in it. Best effort: what it misses is found by looking again. */
export class FolderWatches {
  readonly #environment: Environment;
  readonly #onChange: (key: string) => void;
  readonly #watched = new Map<string, Watched>();
  readonly #folders = new Map<string, string>();
  #closed = false;

  constructor(environment: Environment, onChange: (key: string) => void) {
    this.#environment = environment;
    this.#onChange = onChange;
  }

  /** Calls back with `key` when something in `folder` changes. A folder that was replaced is watched anew. */
  async watch(folder: string, key: string): Promise<void> {
    if (this.#closed) return;
    const { files } = this.#environment;
    if (this.#folders.get(key) !== folder) this.unwatch(key);
    const identity = (await files.stat(folder))?.identity;
    const before = this.#watched.get(folder);
    if (before !== undefined && before.identity === identity) {
      before.keys.add(key);
      this.#folders.set(key, folder);
      return;
    }
    const keys = new Set(before?.keys).add(key);
    if (before !== undefined) this.#drop(folder, before);
    if (identity === undefined) return;
    let handle: Disposable;
    try {
      handle = await this.#watchQuietly(folder, keys);
    } catch {
      // Too many watches, or the folder went: polling goes on without.
      return;
    }
    const rival = this.#watched.get(folder);
    if (this.#closed || rival !== undefined) {
      // Closed meanwhile, or another key watched it first.
      handle[Symbol.dispose]();
      for (const interested of keys) rival?.keys.add(interested);
    } else this.#watched.set(folder, { identity, handle, keys });
    if (!this.#closed) for (const interested of keys) this.#folders.set(interested, folder);
  }

  unwatch(key: string): void {
    const folder = this.#folders.get(key);
    if (folder === undefined) return;
    this.#folders.delete(key);
    const watched = this.#watched.get(folder);
    watched?.keys.delete(key);
    if (watched?.keys.size === 0) this.#drop(folder, watched);
  }

  close(): void {
    this.#closed = true;
    for (const [folder, watched] of [...this.#watched]) this.#drop(folder, watched);
    this.#folders.clear();
  }

  /** A service that writes beside its declared files must not have them read again and again. */
  async #watchQuietly(folder: string, keys: ReadonlySet<string>): Promise<Disposable> {
    const environment = this.#environment;
    let quietUntil = Number.NEGATIVE_INFINITY;
    let later: Disposable | undefined;
    const tell = (): void => {
      later = undefined;
      quietUntil = environment.elapsed() + quietMs;
      for (const interested of keys) this.#onChange(interested);
    };
    const handle = await environment.files.watch(folder, () => {
      if (later !== undefined) return;
      const leftMs = quietUntil - environment.elapsed();
      if (leftMs <= 0) tell();
      else later = environment.after(leftMs, tell);
    });
    return {
      [Symbol.dispose]: () => {
        later?.[Symbol.dispose]();
        handle[Symbol.dispose]();
      },
    };
  }

  #drop(folder: string, watched: Watched): void {
    watched.handle[Symbol.dispose]();
    this.#watched.delete(folder);
  }
}
