import type { FilePort } from '../environment/index.ts';

interface Watched {
  readonly identity: string;
  readonly handle: Disposable;
  readonly keys: Set<string>;
}

/** One watch per folder for all who care about something in it. Best effort: what it misses is found by looking again. */
export class FolderWatches {
  readonly #files: FilePort;
  readonly #onChange: (key: string) => void;
  readonly #watched = new Map<string, Watched>();
  readonly #folders = new Map<string, string>();
  #closed = false;

  constructor(files: FilePort, onChange: (key: string) => void) {
    this.#files = files;
    this.#onChange = onChange;
  }

  /** Calls back with `key` when something in `folder` changes. A folder that was replaced is watched anew. */
  async watch(folder: string, key: string): Promise<void> {
    if (this.#closed) return;
    if (this.#folders.get(key) !== folder) this.unwatch(key);
    const identity = (await this.#files.stat(folder))?.identity;
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
      handle = await this.#files.watch(folder, () => {
        for (const interested of keys) this.#onChange(interested);
      });
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

  #drop(folder: string, watched: Watched): void {
    watched.handle[Symbol.dispose]();
    this.#watched.delete(folder);
  }
}
