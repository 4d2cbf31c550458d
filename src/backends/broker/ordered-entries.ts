import { compareIds } from '../../resource/index.ts';
import { sortById } from './sort-by-id.ts';

const chunkSize = 512;

interface Named {
  readonly id: string;
  /** Gone for good, once it was here. */
  readonly present: boolean;
}

/**
 * Entries in order of their ids. Adding is O(1): new ones wait and are merged at the next ordered read, so that a burst
 * of creates pays one sort and a single one a binary search. Those that went are left out, and removed with the next rebuild.
 */
export class OrderedEntries<Entry extends Named> {
  #chunks: Entry[][] = [];
  #waiting: Entry[] = [];
  /** Entries that are gone, waiting ones included. */
  #gone = 0;
  /** Entries in chunks, those that are gone included. */
  #held = 0;

  add(entry: Entry): void {
    this.#waiting.push(entry);
  }

  /** To be told once for each entry that went. Forgets them when few others are left: who never lists must not pile them up. */
  noteGone(): void {
    this.#gone++;
    if (this.#gone < chunkSize || this.#gone * 4 < (this.#held + this.#waiting.length) * 3) return;
    this.#waiting = this.#waiting.filter(isPresent);
    this.#chunks = this.#chunks.map((chunk) => chunk.filter(isPresent)).filter(({ length }) => length > 0);
    this.#held = this.#chunks.reduce((sum, { length }) => sum + length, 0);
    this.#gone = 0;
  }

  /** Calls back for each present entry in order. */
  forEach(callback: (entry: Entry) => void): void {
    this.#settle();
    for (const chunk of this.#chunks) {
      for (const entry of chunk) if (entry.present) callback(entry);
    }
  }

  /** Calls back in order for each present entry whose id begins with `prefix`. */
  forEachFrom(prefix: string, callback: (entry: Entry) => void): void {
    this.#settle();
    for (let place = this.#chunkOf(prefix); place < this.#chunks.length; place++) {
      const chunk = this.#chunks[place] as Entry[];
      for (let index = placeIn(chunk, prefix); index < chunk.length; index++) {
        const entry = chunk[index] as Entry;
        if (!entry.id.startsWith(prefix)) return;
        if (entry.present) callback(entry);
      }
    }
  }

  #settle(): void {
    const waiting = this.#waiting.filter(isPresent);
    this.#gone -= this.#waiting.length - waiting.length;
    this.#waiting = [];
    const rebuild = this.#gone * 2 > this.#held || waiting.length * 8 > this.#held;
    if (waiting.length === 0 && (!rebuild || this.#held === 0)) return;
    sortById(waiting);
    if (rebuild) return this.#rebuild(waiting);
    for (const entry of waiting) this.#insert(entry);
    this.#held += waiting.length;
  }

  #rebuild(added: readonly Entry[]): void {
    const kept = this.#chunks.flat().filter(isPresent);
    const merged: Entry[] = [];
    let index = 0;
    for (const entry of kept) {
      for (; index < added.length && compareIds((added[index] as Entry).id, entry.id) < 0; index++) merged.push(added[index] as Entry);
      merged.push(entry);
    }
    for (; index < added.length; index++) merged.push(added[index] as Entry);
    this.#chunks = [];
    for (let start = 0; start < merged.length; start += chunkSize) this.#chunks.push(merged.slice(start, start + chunkSize));
    this.#held = merged.length;
    this.#gone = 0;
  }

  #insert(entry: Entry): void {
    const place = Math.min(this.#chunkOf(entry.id), this.#chunks.length - 1);
    const chunk = this.#chunks[place];
    if (chunk === undefined) {
      this.#chunks.push([entry]);
      return;
    }
    chunk.splice(placeIn(chunk, entry.id), 0, entry);
    if (chunk.length > chunkSize * 2) this.#chunks.splice(place, 1, chunk.slice(0, chunkSize), chunk.slice(chunkSize));
  }

  /** The first chunk that does not end below an id. */
  #chunkOf(id: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const chunk = this.#chunks[middle] as Entry[];
      if (compareIds((chunk[chunk.length - 1] as Entry).id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isPresent({ present }: Named): boolean {
  return present;
}

/** The first place in a chunk that is not below an id. */
function placeIn(chunk: readonly Named[], id: string): number {
  let from = 0;
  let to = chunk.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compareIds((chunk[middle] as Named).id, id) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
