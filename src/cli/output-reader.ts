import type { FilePort, FileStat } from '../environment/index.ts';
import type { ServiceOutput } from '../host/index.ts';

const chunkBytes = 64 * 1024;
/** So much of two outputs is compared, to tell whether one still is the copy of the other. */
const headBytes = 4096;

export interface OutputReaderOptions {
  readonly files: FilePort;
  readonly output: Pick<ServiceOutput, 'file' | 'earlier'>;
  readonly signal: AbortSignal;
  /** Told of each line, without its end. */
  readonly print: (line: string) => void;
}

/** Reads an output that grows, line by line, over its rotations: each line once. */
export class OutputReader {
  readonly #files: FilePort;
  readonly #file: string;
  readonly #earlier: readonly string[];
  readonly #signal: AbortSignal;
  readonly #print: (line: string) => void;
  readonly #decoder = new TextDecoder();
  /** The newest earlier output when the present one was begun. */
  #before: FileStat | undefined;
  #offset = 0;
  #rest = '';

  constructor({ files, output, signal, print }: OutputReaderOptions) {
    this.#files = files;
    this.#file = output.file;
    this.#earlier = output.earlier;
    this.#signal = signal;
    this.#print = print;
  }

  /** Reads what is there: all of the present output, or its last lines, for which earlier outputs are read as well. */
  async begin(tail: number | undefined): Promise<void> {
    this.#before = await this.#newestEarlier();
    if (tail !== undefined) {
      const { index, offset } = await this.#tailPlace(tail);
      if (index === 0) this.#offset = offset;
      else await this.#readEarlier(index, offset);
    }
    await this.#readPresent();
  }

  /** Reads what came since, from outputs that were rotated meanwhile too. */
  async more(): Promise<void> {
    const size = await this.#sizeOf(this.#file);
    const newest = await this.#newestEarlier();
    const same = newest?.identity === this.#before?.identity;
    const rewritten = newest !== undefined && (newest.size !== this.#before?.size || newest.modifiedMs !== this.#before?.modifiedMs);
    if (size < this.#offset || (!same && newest !== undefined && !(await this.#isCopied(size, newest)))) {
      const rotations = same ? (rewritten ? 1 : 0) : await this.#rotations();
      if (rotations > 0) await this.#readEarlier(rotations, this.#offset);
      this.#offset = 0;
      this.#before = newest;
    }
    await this.#readPresent();
  }

  /** A last line without an end is a line too. */
  end(): void {
    if (this.#rest !== '') this.#print(this.#rest);
  }

  /** How often the output was rotated since: the one that was the newest then has gone down by so many places. */
  async #rotations(): Promise<number> {
    let count = 0;
    for (const path of this.#earlier) {
      const stat = await this.#files.stat(path);
      if (stat === undefined || stat.identity === this.#before?.identity) break;
      count++;
    }
    return count;
  }

  /** Whether an output was copied away and is not cut yet. */
  async #isCopied(size: number, copy: FileStat): Promise<boolean> {
    const [first] = this.#earlier;
    if (first === undefined || size < copy.size) return false;
    const length = Math.min(headBytes, copy.size);
    const [left, right] = await Promise.all([this.#files.readRange(this.#file, 0, length), this.#files.readRange(first, 0, length)]);
    return Buffer.compare(left, right) === 0;
  }

  /** Reads earlier outputs, from a place in the oldest of them on. */
  async #readEarlier(oldest: number, offset: number): Promise<void> {
    for (let index = oldest; index > 0; index--) {
      const path = this.#earlier[index - 1] as string;
      await this.#read(path, index === oldest ? offset : 0, await this.#sizeOf(path));
    }
  }

  async #readPresent(): Promise<void> {
    this.#offset = await this.#read(this.#file, this.#offset, await this.#sizeOf(this.#file));
  }

  /** Answers how far it came. */
  async #read(path: string, from: number, end: number): Promise<number> {
    let offset = from;
    while (offset < end && !this.#signal.aborted) {
      const bytes = await this.#files.readRange(path, offset, Math.min(chunkBytes, end - offset));
      if (bytes.length === 0) break;
      offset += bytes.length;
      const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#print(line);
    }
    return offset;
  }

  /** Where the last lines begin: 0 is the present output, 1 the newest earlier one. */
  async #tailPlace(lines: number): Promise<{ readonly index: number; readonly offset: number }> {
    const present = await this.#sizeOf(this.#file);
    if (lines === 0) return { index: 0, offset: present };
    const copied = this.#before !== undefined && (await this.#isCopied(present, this.#before));
    let oldest = 0;
    let found = 0;
    let isLast = true;
    for (const [index, path] of [this.#file, ...this.#earlier].entries()) {
      // While the present output is being copied away it is long itself.
      if (index > 0 && copied) break;
      const size = index === 0 ? present : await this.#sizeOf(path);
      if (index > 0 && size === 0) break;
      oldest = index;
      for (let end = size; end > 0; end -= chunkBytes) {
        const start = Math.max(0, end - chunkBytes);
        const bytes = await this.#files.readRange(path, start, end - start);
        for (let at = bytes.length - 1; at >= 0; at--) {
          if (bytes[at] === 0x0a && !isLast && ++found === lines) return { index, offset: start + at + 1 };
          isLast = false;
        }
      }
    }
    return { index: oldest, offset: 0 };
  }

  async #sizeOf(path: string): Promise<number> {
    return (await this.#files.stat(path))?.size ?? 0;
  }

  async #newestEarlier(): Promise<FileStat | undefined> {
    const [first] = this.#earlier;
    return first === undefined ? undefined : this.#files.stat(first);
  }
}
