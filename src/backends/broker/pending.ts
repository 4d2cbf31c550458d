import type { CompiledQuery, Resource } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import type { Bookmarks } from './bookmark.ts';
import type { Commit } from './commit.ts';

/** What a lagging watcher still has to learn about one id. */
interface PendingEntry {
  /** The value that was delivered last; `undefined`: none. */
  readonly base: Resource | undefined;
  latest: Resource | undefined;
  revision: number;
}

/** Counts pending entries of all watchers of a store together. */
export interface PendingBudget {
  count: number;
  readonly limit: number;
}

/**
 * What a lagging watcher still has to learn: at most one entry per id, ordered by the newest revision of each. Values are
 * shared, so an entry costs its map slot only.
 */
export class Pending {
  readonly #entries = new Map<string, PendingEntry>();
  readonly #budget: PendingBudget;
  readonly #query: CompiledQuery | undefined;
  /** Everything at or below this revision was delivered. */
  readonly #since: number;
  /** Above the store's limit live values are not kept: they come from a snapshot, and only what went is remembered. */
  #snapshotNeeded = false;
  /** What was left out was not looked at by the query: nobody knows what of it the reader has seen. */
  #unsure = false;

  constructor(budget: PendingBudget, query: CompiledQuery | undefined, since: number) {
    this.#budget = budget;
    this.#query = query;
    this.#since = since;
  }

  get size(): number {
    return this.#entries.size;
  }

  get snapshotNeeded(): boolean {
    return this.#snapshotNeeded;
  }

  /** After a snapshot the reader may know of things that do not match any more, as they were at this revision. */
  get unsureSince(): number | undefined {
    return this.#unsure && this.#query !== undefined ? this.#since : undefined;
  }

  /** Live values were left out above: they come from a snapshot. */
  leaveOutLiving(): void {
    this.#unsure = true;
    if (!this.#snapshotNeeded) this.#overflow();
  }

  /** An incarnation went; what of it the reader has seen is not known. */
  addGone(key: string, old: Resource, revision: number): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#entries.delete(key);
      this.#budget.count--;
      if (known.base !== undefined) this.#keep(key, { base: known.base, latest: undefined, revision });
    } else if (Number(old.metadata.uid) <= this.#since) this.#keep(key, { base: old, latest: undefined, revision });
  }

  add(key: string, commit: Pick<Commit, 'old' | 'value' | 'revision'>): void {
    const visible = (value: Resource | undefined): Resource | undefined =>
      value !== undefined && (this.#query === undefined || this.#query(value.metadata)) ? value : undefined;
    const known = this.#entries.get(key);
    const base = known === undefined ? (visible(commit.old) ?? this.#perhapsSeen(commit.old)) : known.base;
    const latest = visible(commit.value);
    if (known !== undefined) {
      // An entry moves to its newest revision: a map keeps the order of insertion.
      this.#entries.delete(key);
      this.#budget.count--;
    }
    // Nothing delivered and nothing there: nothing to tell.
    if (base === undefined && latest === undefined) return;
    if (!this.#snapshotNeeded && this.#budget.count >= this.#budget.limit) this.#overflow();
    if (!this.#snapshotNeeded) this.#keep(key, { base, latest, revision: commit.revision });
    else if (known !== undefined && known.latest === undefined) this.#keep(key, known);
    // What came after the last delivery is told by the snapshot, or never was there: churn must not pile up.
    else if (base !== undefined && latest?.metadata.uid !== base.metadata.uid && !(Number(base.metadata.uid) > this.#since))
      this.#keep(key, { base, latest: undefined, revision: commit.revision });
  }

  /** A value that does not match, of something that did perhaps, when the reader last heard of it. */
  #perhapsSeen(old: Resource | undefined): Resource | undefined {
    return this.#unsure && old !== undefined && mayBeKnown(old, this.#since) ? old : undefined;
  }

  #keep(key: string, entry: PendingEntry): void {
    this.#entries.set(key, entry);
    this.#budget.count++;
  }

  /** From here on only what went is remembered, at most what was there at the last delivery: a snapshot tells what lives. */
  #overflow(): void {
    this.#snapshotNeeded = true;
    for (const [key, entry] of this.#entries) {
      const { base, latest } = entry;
      if (base !== undefined && latest?.metadata.uid !== base.metadata.uid) entry.latest = undefined;
      else {
        this.#entries.delete(key);
        this.#budget.count--;
      }
    }
  }

  /** Takes about `max` events, oldest first; all carry `safe` as bookmark but the very last one, once nothing is left. */
  take(max: number, safe: number, bookmarks: Bookmarks): StateEvent[] {
    const events: StateEvent[] = [];
    for (const [key, entry] of this.#entries) {
      if (events.length >= max) break;
      this.#entries.delete(key);
      this.#budget.count--;
      const last = this.#entries.size === 0 && !this.#snapshotNeeded;
      const { base, latest, revision } = entry;
      const replaced = base !== undefined && latest !== undefined && base.metadata.uid !== latest.metadata.uid;
      if (base !== undefined && (latest === undefined || replaced)) {
        events.push(resyncEvent({ type: 'destroyed', resource: base }, revision, last && !replaced ? revision : safe, bookmarks));
      }
      if (latest === undefined) continue;
      if (base === undefined || replaced)
        events.push(resyncEvent({ type: 'created', resource: latest }, revision, last ? revision : safe, bookmarks));
      else events.push(resyncEvent({ type: 'updated', resource: latest, old: base }, revision, last ? revision : safe, bookmarks));
    }
    return events;
  }

  clear(): void {
    this.#budget.count -= this.#entries.size;
    this.#entries.clear();
  }
}

/** Whether somebody who read everything up to a revision may know a resource, as it was before it changed. */
export function mayBeKnown({ metadata }: Resource, revision: number): boolean {
  return Number(metadata.uid) <= revision && Number(metadata.version) > revision;
}

type Change =
  | { readonly type: 'created' | 'destroyed'; readonly resource: Resource }
  | { readonly type: 'updated'; readonly resource: Resource; readonly old: Resource };

/** An event of a coalesced stretch. A negative `bookmarkAt` means that no place is safe yet. */
export function resyncEvent(change: Change, revision: number, bookmarkAt: number, bookmarks: Bookmarks): StateEvent {
  return Object.freeze({ ...change, revision, resync: true, ...(bookmarkAt >= 0 && { bookmark: bookmarks.at(bookmarkAt) }) });
}
