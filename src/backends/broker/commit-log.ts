import type { Commit } from './commit.ts';

/**
 * The newest commits of one kind, oldest first. Places in it are absolute: they stay valid while older commits are
 * dropped, so that a watcher's cursor is one number.
 */
export class CommitLog {
  #commits: Commit[] = [];
  #first = 0;
  /** Everything at or below this revision was dropped. */
  floor: number;

  constructor(floor: number) {
    this.floor = floor;
  }

  /** Place of the oldest commit that is kept. */
  get start(): number {
    return this.#first;
  }

  /** Place after the newest commit. */
  get end(): number {
    return this.#first + this.#commits.length;
  }

  /** Nothing was ever written here. */
  get untouched(): boolean {
    return this.#commits.length === 0 && this.#first === 0;
  }

  get size(): number {
    return this.#commits.length;
  }

  at(place: number): Commit | undefined {
    return this.#commits[place - this.#first];
  }

  /** The commits from one place to another, the second excluded. */
  slice(from: number, to: number): readonly Commit[] {
    return this.#commits.slice(from - this.#first, to - this.#first);
  }

  /** The revision to resume from so that the commit at `place` is the next; `undefined` at the end. */
  before(place: number): number | undefined {
    const next = this.at(place);
    if (next === undefined) return undefined;
    return this.at(place - 1)?.revision ?? this.floor;
  }

  append(commit: Commit): void {
    this.#commits.push(commit);
  }

  /** Puts older commits in front of all; only while nobody has a cursor at the start. */
  prepend(commits: readonly Commit[], floor: number): void {
    this.#commits = [...commits, ...this.#commits];
    this.#first -= commits.length;
    this.floor = floor;
  }

  /** The first place whose revision is above `revision`. */
  after(revision: number): number {
    let low = 0;
    let high = this.#commits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#commits[middle] as Commit).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#first + low;
  }

  /** Drops the oldest `count` commits. */
  drop(count: number): void {
    const last = this.#commits[count - 1];
    if (last === undefined) return;
    this.floor = last.revision;
    this.#commits.splice(0, count);
    this.#first += count;
  }
}
