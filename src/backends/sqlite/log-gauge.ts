import { closeSync, constants, openSync, readSync } from 'node:fs';

const headerBytes = 32;
const frameHeaderBytes = 24;
const saltBytes = 8;

/**
 * Tells whether the write-ahead log holds so many pages. SQLite says it only to who folds the log in, and the size of the file tells
 * nothing: it begins anew inside the same file. Each beginning has its salts, in the header and in every page written since.
 */
export class LogGauge {
  readonly #path: string;
  readonly #place: number;
  readonly #found = Buffer.alloc(2 * saltBytes);
  #descriptor: number | undefined;

  constructor(file: string, pageBytes: number, pages: number) {
    this.#path = `${file}-wal`;
    this.#place = headerBytes + (pages - 1) * (frameHeaderBytes + pageBytes);
  }

  reached(): boolean {
    try {
      this.#descriptor ??= openQuietly(this.#path);
      return (
        readSync(this.#descriptor, this.#found, 0, saltBytes, 16) === saltBytes &&
        readSync(this.#descriptor, this.#found, saltBytes, saltBytes, this.#place + 8) === saltBytes &&
        this.#found.compare(this.#found, saltBytes, 2 * saltBytes, 0, saltBytes) === 0
      );
    } catch {
      // No log, or none that can be read: folding it in tells which.
      return true;
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** Being read must not give the file a new time, which its next sync would have to write. Only its owner may ask for that. */
function openQuietly(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NOATIME ?? 0));
  } catch {
    return openSync(path, 'r');
  }
}
