import type { FilePort } from '../environment/index.ts';
import { boundedText } from '../resource/index.ts';
import { systemCode } from './companion.ts';

/** How much of an output is read at once. */
const chunkBytes = 64 * 1024;
/** Longest line that is kept as the last output. */
const lineLimit = 500;

export interface RotationOptions {
  /** An output longer than this is copied away and cut, bytes. @default 10 MiB */
  readonly maxBytes: number;
  /** How many earlier outputs are kept. @default 3 */
  readonly keep: number;
}

/** The names of earlier outputs, the newest first. */
export function rotatedNames(path: string, keep: number): readonly string[] {
  return Array.from({ length: keep }, (_, index) => `${path}.${index + 1}`);
}

/**
 * Copies an output that has grown too long, and cuts it. The writer keeps its open file, which is why it is not renamed;
 * what it writes between the copy and the cut is lost. Answers whether it did.
 */
export async function rotateOutput(files: FilePort, path: string, { maxBytes, keep }: RotationOptions): Promise<boolean> {
  const found = await files.stat(path);
  if (found?.kind !== 'file' || found.size <= maxBytes) return false;
  const names = rotatedNames(path, keep);
  const [newest] = names;
  if (newest !== undefined) {
    // The earlier ones move only once there is a whole copy: else a full disk would cost one of them at every attempt.
    const copy = copyName(path);
    try {
      await files.copy(path, copy);
    } catch (error) {
      await files.remove(copy);
      throw error;
    }
    for (let index = names.length - 1; index > 0; index--) {
      const from = names[index - 1] as string;
      if ((await files.stat(from)) !== undefined) await files.rename(from, names[index] as string);
    }
    await files.rename(copy, newest);
  }
  await files.truncate(path, 0);
  return true;
}

/** What an output is copied to before it takes its place among the earlier ones. */
function copyName(path: string): string {
  return `${path}.copy`;
}

/** Removes an output and its earlier ones. */
export async function removeOutputs(files: FilePort, path: string, keep: number): Promise<void> {
  for (const name of [path, copyName(path), ...rotatedNames(path, keep)]) await files.remove(name);
}

/** The last line that is not empty, of what was written from `start` on; `undefined`: nothing. */
export async function lastLine(files: FilePort, path: string, start: number): Promise<string | undefined> {
  const size = (await files.stat(path))?.size ?? 0;
  // A shorter file was cut meanwhile: all of it is newer.
  const from = Math.max(size < start ? 0 : start, size - 8 * 1024);
  if (size <= from) return undefined;
  const text = new TextDecoder().decode(await files.readRange(path, from, size - from));
  const line = text
    .split(/\r?\n|\r/)
    .map((candidate) => candidate.trim())
    .findLast((candidate) => candidate !== '');
  return line === undefined ? undefined : boundedText(line, lineLimit + 1, '…');
}

/** Looks for a line in an output that grows, each time only at what is new. */
export class OutputSearch {
  readonly #files: FilePort;
  readonly #path: string;
  readonly #matches: (line: string) => boolean;
  readonly #decoder = new TextDecoder();
  readonly #signal: AbortSignal | undefined;
  #position: number;
  #unfinished = '';

  /** A writer may be faster than this reads: the signal ends a look that would not end by itself. */
  constructor(files: FilePort, path: string, start: number, matches: (line: string) => boolean, signal?: AbortSignal) {
    this.#files = files;
    this.#path = path;
    this.#matches = matches;
    this.#position = start;
    this.#signal = signal;
  }

  /** Whether a line matched in what came since the last look. A line that is not ended yet counts too. */
  async found(): Promise<boolean> {
    for (;;) {
      this.#signal?.throwIfAborted();
      const size = (await this.#files.stat(this.#path))?.size ?? 0;
      if (size < this.#position) {
        this.#position = 0;
        this.#unfinished = '';
      }
      if (size === this.#position) return false;
      let chunk: Uint8Array;
      try {
        chunk = await this.#files.readRange(this.#path, this.#position, Math.min(chunkBytes, size - this.#position));
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return false;
        throw error;
      }
      if (chunk.length === 0) return false;
      this.#position += chunk.length;
      const lines = (this.#unfinished + this.#decoder.decode(chunk, { stream: true })).split(/\r?\n/);
      if (lines.some((line) => this.#matches(line))) return true;
      this.#unfinished = (lines.at(-1) ?? '').slice(-chunkBytes);
    }
  }
}
