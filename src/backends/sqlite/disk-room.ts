import { closeSync, openSync, rmSync, statfsSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database, Statement } from './driver.ts';
import { resultCode, sqliteFull } from './driver.ts';
import { LogGauge } from './log-gauge.ts';
import { sizeOf } from './side-file.ts';

const pageBytes = 4096;
/** Of the reserve: a quarter of the store, within these. */
const leastReserve = 256 * 1024;
const largestReserve = 12 * 1024 * 1024;
/** A small store on a disk with room gets this much: the log of one that grows fast is then folded in less often. */
const ampleReserve = 2 * 1024 * 1024;
const ampleFactor = 64;
/** What a destroy may need in the write-ahead log, beyond what it takes to fold that in. */
const forOneDestroy = 128 * 1024;
/** What the write-ahead log keeps of its size when it begins anew, and while the disk is full. */
const keptLogBytes = 16 * 1024 * 1024;
const keptWhenFull = 256 * 1024;
/** The write-ahead log is folded into the file at this size, pages. */
const foldedAtPages = 2000;
/** How far the log is looked at anew after so much more in it, bytes, as far as one can tell without a look. */
const lookedAtBytes = 1024 * 1024;
/** What a commit, and each write in it, puts into the log beside what is written: pages that change. */
const bytesPerCommit = 32 * 1024;
const bytesPerWrite = 8 * 1024;
/** The largest number of pages that SQLite knows. */
const anyPages = 4_294_967_294;

/**
 * The way out of a full disk. Even a destroy writes: into the write-ahead log, and folding that in makes the file grow by what was
 * created since the last time. So a file of zeros beside the store holds some room, which is given up when the disk is full; and
 * the log is folded in before the store has grown by more than that. While there is no room the store does not grow at all: what
 * is destroyed makes room inside it. Once the reserve can be had again, with something to spare, all is as before.
 */
export class DiskRoom {
  readonly #path: string;
  readonly #file: string;
  readonly #database: Database;
  readonly #maxPages: number;
  readonly #pageCount: Statement;
  readonly #gauge: LogGauge;
  #reserved: number;
  /** Pages of the file itself, as of the last fold. */
  #foldedPages: number;
  /** What may have come into the log since it was looked at. */
  #unseenBytes = 0;
  #full = false;
  readonly #least: number;

  /** Only while holding the store's lock. */
  constructor(file: string, database: Database, maxPages: number | undefined) {
    this.#path = `${file}-reserve`;
    this.#file = file;
    this.#database = database;
    this.#maxPages = maxPages ?? anyPages;
    this.#pageCount = database.prepare('PRAGMA page_count');
    // SQLite would fold the log in inside a commit, and tell nobody when that failed.
    database.exec('PRAGMA wal_autocheckpoint = 0');
    this.#gauge = new LogGauge(file, Number(database.prepare('PRAGMA page_size').get()?.page_size), foldedAtPages);
    // What a program that was killed left behind serves again.
    this.#reserved = sizeOf(this.#path) ?? 0;
    this.#least = maxPages === undefined && freeBytes(file) > ampleFactor * ampleReserve ? ampleReserve : leastReserve;
    this.#foldedPages = Math.floor((sizeOf(file) ?? 0) / pageBytes);
    this.#limit(this.#maxPages, keptLogBytes);
    if (!this.#take(this.#wanted())) this.enterFull();
  }

  /** Before a write: whether there is room again. */
  beforeCommit(): void {
    if (this.#full) this.#tryToLeave();
  }

  /** After a commit of so many writes, with so many bytes, is durable. */
  afterCommit(writes: number, bytes: number): void {
    this.#unseenBytes += bytesPerCommit + writes * bytesPerWrite + 2 * bytes;
    this.#lookAfter(this.#unseenBytes >= lookedAtBytes);
  }

  /** After anything else was written. */
  afterChange(): void {
    this.#lookAfter(true);
  }

  #lookAfter(atLog: boolean): void {
    if (atLog) this.#unseenBytes = 0;
    const pages = this.#pages();
    const grown = (pages - this.#foldedPages) * pageBytes;
    if (this.#full || grown > this.#reserved - forOneDestroy || (atLog && this.#gauge.reached())) this.fold();
    if (this.#full) return this.#tryToLeave();
    const wanted = wantedReserve(pages, this.#least);
    if (wanted >= this.#reserved * 2) this.#take(wanted);
  }

  /** The disk is full: gives up the reserve, and lets the store grow no more. */
  enterFull(): void {
    this.#full = true;
    this.#drop();
    this.fold();
    this.#limit(Math.min(this.#maxPages, this.#pages()), keptWhenFull);
  }

  /**
   * Folds the write-ahead log into the file; its own room on the disk it keeps, or most of it. Where even that finds no room, which
   * SQLite tells in more than one way, the log stays as it is. Throws when the disk fails: what was acknowledged is in the log still.
   */
  fold(): void {
    try {
      const { log, checkpointed } = this.#database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {};
      if (log === checkpointed) this.#foldedPages = this.#pages();
    } catch (error) {
      if (!this.#full && resultCode(error) !== sqliteFull) throw error;
    }
  }

  /** While the lock is still held. */
  remove(): void {
    this.#gauge.close();
    this.#drop();
  }

  #tryToLeave(): void {
    const wanted = this.#wanted();
    if (freeBytes(this.#file) < wanted + forOneDestroy || !this.#take(wanted + forOneDestroy)) return;
    this.#truncate(wanted);
    this.#full = false;
    this.#limit(this.#maxPages, keptLogBytes);
  }

  /** Makes the reserve as large as this; `false` when there is no room for it. */
  #take(bytes: number): boolean {
    if (this.#reserved >= bytes) return true;
    let descriptor: number;
    try {
      descriptor = openSync(this.#path, 'a', 0o600);
    } catch {
      return false;
    }
    try {
      const zeros = new Uint8Array(Math.min(bytes - this.#reserved, 1 << 20));
      while (this.#reserved < bytes) this.#reserved += writeSync(descriptor, zeros, 0, Math.min(zeros.length, bytes - this.#reserved));
      return true;
    } catch {
      return false;
    } finally {
      closeSync(descriptor);
    }
  }

  #truncate(bytes: number): void {
    try {
      truncateSync(this.#path, bytes);
      this.#reserved = bytes;
    } catch {
      // It stays a little larger than it need be.
    }
  }

  #drop(): void {
    rmSync(this.#path, { force: true });
    this.#reserved = 0;
  }

  #wanted(): number {
    return wantedReserve(this.#pages(), this.#least);
  }

  #pages(): number {
    return Number(this.#pageCount.get()?.page_count);
  }

  #limit(pages: number, keptLog: number): void {
    this.#database.exec(`PRAGMA max_page_count = ${pages}; PRAGMA journal_size_limit = ${keptLog}`);
  }
}

function wantedReserve(pages: number, least: number): number {
  return Math.min(largestReserve, Math.max(least, Math.floor((pages * pageBytes) / 4)));
}

function freeBytes(file: string): number {
  const { bavail, bsize } = statfsSync(dirname(file));
  return bavail * bsize;
}
