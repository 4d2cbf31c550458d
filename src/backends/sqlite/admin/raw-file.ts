import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A page as it stands in the file, or in its write-ahead log. */
export interface RawPage {
  readonly number: number;
  readonly bytes: Buffer;
}

/**
 * The pages of a database file, read without SQLite, damaged or not. Closing any descriptor of a file drops the locks that this
 * process has on it, so it is closed only when the file is done with.
 */
export class RawFile implements Disposable {
  readonly #descriptor: number;
  readonly #log: RawLog | undefined;
  readonly pageBytes: number;
  readonly pageCount: number;
  /** Bytes of a page that are used: the others are reserved. */
  readonly usable: number;
  /** Above 2: only programs newer than SQLite itself may write it. */
  readonly writeVersion: number;

  constructor(file: string) {
    this.#descriptor = openSync(file, 'r');
    const { size } = fstatSync(this.#descriptor);
    const header = this.#read(0, 100);
    const said = header.length < 100 ? 0 : header.readUInt16BE(16);
    // Ours have 4 KiB unless somebody changed that; a damaged header says anything.
    this.pageBytes = said >= 512 && (said & (said - 1)) === 0 ? said : 4096;
    this.usable = this.pageBytes - ((header[20] ?? 0) <= 32 ? (header[20] ?? 0) : 0);
    this.writeVersion = header[18] ?? 0;
    this.pageCount = Math.floor(size / this.pageBytes);
    this.#log = RawLog.open(`${file}-wal`, this.pageBytes);
  }

  /** The newest that is known of a page; `undefined`: there is none. */
  page(number: number): Buffer | undefined {
    const logged = this.#log?.newest(number);
    if (logged !== undefined) return logged;
    if (number < 1 || number > this.pageCount) return undefined;
    return this.#read((number - 1) * this.pageBytes, this.pageBytes);
  }

  /** Every page, the newest of each. */
  *pages(): Generator<RawPage> {
    const last = Math.max(this.pageCount, this.#log?.lastPage ?? 0);
    for (let number = 1; number <= last; number++) {
      const bytes = this.page(number);
      if (bytes !== undefined) yield { number, bytes };
    }
  }

  /** What stands in the write-ahead log, in the order of writing, what was overwritten later too. */
  *logged(): Generator<RawPage> {
    yield* this.#log?.frames() ?? [];
  }

  /** Pages that are not in use, as far as their list can be read. */
  freePages(): ReadonlySet<number> {
    const free = new Set<number>();
    let trunk = this.page(1)?.readUInt32BE(32) ?? 0;
    while (trunk !== 0 && !free.has(trunk)) {
      const bytes = this.page(trunk);
      if (bytes === undefined) break;
      free.add(trunk);
      const count = bytes.readUInt32BE(4);
      if (count > this.usable / 4 - 2) break;
      for (let index = 0; index < count; index++) free.add(bytes.readUInt32BE(8 + index * 4));
      trunk = bytes.readUInt32BE(0);
    }
    return free;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
    this.#log?.[Symbol.dispose]();
  }

  #read(offset: number, length: number): Buffer {
    return readAt(this.#descriptor, offset, length);
  }
}

const logHeaderBytes = 32;
const frameHeaderBytes = 24;

/** The frames of a write-ahead log that belong to it, whether or not their checksums lead up to them. */
class RawLog implements Disposable {
  readonly #descriptor: number;
  readonly #pageBytes: number;
  readonly #places: (readonly [page: number, offset: number])[] = [];
  readonly #newest = new Map<number, number>();
  lastPage = 0;

  static open(path: string, pageBytes: number): RawLog | undefined {
    let descriptor: number;
    try {
      descriptor = openSync(path, 'r');
    } catch {
      return undefined;
    }
    return new RawLog(descriptor, pageBytes);
  }

  private constructor(descriptor: number, pageBytes: number) {
    this.#descriptor = descriptor;
    this.#pageBytes = pageBytes;
    const { size } = fstatSync(descriptor);
    const header = readAt(descriptor, 0, logHeaderBytes);
    // Each round through the log has its own salts; frames of an earlier one are left behind the present ones.
    const salts = isLogHeader(header, pageBytes)
      ? header.subarray(16, 24)
      : readAt(descriptor, logHeaderBytes, frameHeaderBytes).subarray(8, 16);
    for (let offset = logHeaderBytes; offset + frameHeaderBytes + pageBytes <= size; offset += frameHeaderBytes + pageBytes) {
      const frame = readAt(descriptor, offset, frameHeaderBytes);
      if (!frame.subarray(8, 16).equals(salts)) continue;
      const page = frame.readUInt32BE(0);
      if (page === 0 || page > 0x7fff_ffff) continue;
      this.#places.push([page, offset + frameHeaderBytes]);
      this.#newest.set(page, offset + frameHeaderBytes);
      this.lastPage = Math.max(this.lastPage, page);
    }
  }

  newest(page: number): Buffer | undefined {
    const offset = this.#newest.get(page);
    return offset === undefined ? undefined : readAt(this.#descriptor, offset, this.#pageBytes);
  }

  *frames(): Generator<RawPage> {
    for (const [number, offset] of this.#places) yield { number, bytes: readAt(this.#descriptor, offset, this.#pageBytes) };
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

function isLogHeader(header: Buffer, pageBytes: number): boolean {
  return header.length === logHeaderBytes && header.readUInt32BE(0) >>> 1 === 0x377f0682 >>> 1 && header.readUInt32BE(8) === pageBytes;
}

function readAt(descriptor: number, offset: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const count = readSync(descriptor, buffer, filled, length - filled, offset + filled);
    if (count === 0) break;
    filled += count;
  }
  return buffer.subarray(0, filled);
}
