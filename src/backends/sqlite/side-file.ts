import { accessSync, closeSync, constants, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { seal, unseal } from './checksum.ts';
import { StoreFailure } from './failures.ts';

/** The first line has this length, so that it can be overwritten in place. */
const markBytes = 96;

export interface SideNotes {
  /** The newest revision that was acknowledged, and by which store; absent when unreadable. */
  readonly mark: { readonly storeId: string; readonly revision: number } | undefined;
  readonly holder: string;
}

/**
 * A small file beside the store while it is open: who holds it, and the newest revision that was acknowledged. It is
 * written without a sync, after the sync of the store itself: it never knows of more than was durable. After a crash it tells
 * whether the write-ahead log lost something, which SQLite itself takes for the end of the log.
 */
export class SideFile {
  readonly #path: string;
  readonly #storeId: string;
  readonly #descriptor: number;

  /** Only while holding the store's lock. */
  constructor(file: string, notes: { readonly storeId: string; readonly revision: number; readonly holder: string }) {
    this.#path = sidePath(file);
    this.#storeId = notes.storeId;
    // Replaced, not overwritten: somebody may be reading it. In one step: there is one all the while that a file is in use.
    const fresh = `${this.#path}-new`;
    rmSync(fresh, { force: true });
    this.#descriptor = openSync(fresh, 'wx', 0o600);
    renameSync(fresh, this.#path);
    this.mark(notes.revision);
    try {
      writeSync(this.#descriptor, `${notes.holder}\n`, markBytes);
    } catch {
      // On a full disk a store is still opened, so that something can be destroyed.
    }
  }

  mark(revision: number): void {
    try {
      writeSync(this.#descriptor, `${seal(`${this.#storeId} ${revision}`).padEnd(markBytes - 1)}\n`, 0);
    } catch {
      // A help only: the write that it tells of is durable.
    }
  }

  /** While the lock is still held, else it could be the next one's. */
  remove(): void {
    closeSync(this.#descriptor);
    rmSync(this.#path, { force: true });
  }
}

/** Makes an empty one where there is none, before anything else tells that the file is in use. Only while holding the lock. */
export function announceUse(file: string): void {
  closeSync(openSync(sidePath(file), 'a', 0o600));
}

export function sidePath(file: string): string {
  return `${file}-holder`;
}

/** `undefined` when there is none. */
export function readSideFile(file: string): SideNotes | undefined {
  let text: string;
  try {
    text = readFileSync(sidePath(file), 'utf8').slice(0, 4096);
  } catch {
    return undefined;
  }
  const line = unseal(text.slice(0, markBytes).trimEnd());
  const [storeId, revision] = line?.split(' ') ?? [];
  return {
    mark: storeId === undefined || revision === undefined ? undefined : { storeId, revision: Number(revision) },
    holder: text.slice(markBytes).split('\n', 1)[0] || 'another process',
  };
}

/**
 * Bytes of a file; `undefined` when it is not there. Throws Unavailable for a folder, a device or a pipe: nothing of a store is one, and
 * a store that took its place would break what others use.
 */
export function sizeOf(path: string): number | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isFile()) return stat?.size;
  const kind = stat.isDirectory() ? 'a folder' : 'a device or a pipe';
  throw new StoreFailure({ code: 'Unavailable', message: `${path} is ${kind}, and no file; name a store file` });
}

/** Whether the system lets us write a file. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
