import type { Kind, QueryPlan, Resource, SteadystateError } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import type { Bookmarks } from './bookmark.ts';
import type { Commit } from './commit.ts';
import { CommitLog } from './commit-log.ts';
import type { Folds } from './folds.ts';
import type { KindWatcher } from './kind-watcher.ts';
import { LabelIndex } from './label-index.ts';
import { OrderedEntries } from './ordered-entries.ts';
import type { PointerWatcher } from './pointer-watcher.ts';
import { sortById } from './sort-by-id.ts';

/** What a store opened from disk knows of a value that nobody has asked for yet. */
export interface EncodedResource {
  decode(): Resource;
}

/** One resource of a kind: what readers see, and above it what is on its way to the disk. There are millions: each field counts. */
export class Entry {
  readonly id: string;
  protected held: Resource | EncodedResource | undefined;
  /** The newest write that is not durable yet. */
  staged: StagedWrite | undefined;

  constructor(id: string) {
    this.id = id;
    this.held = undefined;
    this.staged = undefined;
  }

  /** The durable value; `undefined` while only a create is staged, and once it is gone. */
  get value(): Resource | undefined {
    return this.held as Resource | undefined;
  }

  set value(value: Resource | undefined) {
    this.held = value;
  }

  get present(): boolean {
    return this.held !== undefined;
  }
}

/** What was read from disk: decoded when somebody asks for it. A class of its own, so that no other entry looks at what its value is. */
class LoadedEntry extends Entry {
  #encoded = true;

  constructor(id: string, encoded: EncodedResource) {
    super(id);
    this.held = encoded;
  }

  override get value(): Resource | undefined {
    if (this.#encoded) this.value = (this.held as EncodedResource).decode();
    return this.held as Resource | undefined;
  }

  override set value(value: Resource | undefined) {
    this.#encoded = false;
    this.held = value;
  }
}

/** A write that was accepted and waits for its sync. */
export interface StagedWrite {
  readonly value: Resource | undefined;
  /** The fate of the write: `undefined` when it is durable, else why not. Never rejects. */
  readonly settled: Promise<SteadystateError | undefined>;
}

/** All of one kind. */
export class Collection {
  readonly kind: Kind;
  readonly entries = new Map<string, Entry>();
  readonly ordered = new OrderedEntries<Entry>();
  readonly log: CommitLog;
  readonly kindWatchers = new Set<KindWatcher>();
  readonly pointerWatchers = new Map<string, Set<PointerWatcher>>();
  /** What left the log before lagging watchers have read it; made for the first of them. */
  folds: Folds | undefined;
  /** Kind watchers whose reader waits; they are woken by the next matching commit and wait anew. */
  waiting = new Set<KindWatcher>();
  /** Watches that are being established: the collection that they hold must stay the one that writes go to. */
  establishing = 0;
  /** How many resources readers see. */
  size = 0;
  #listed: readonly Resource[] | undefined;
  readonly #labels = new LabelIndex<Entry>();
  /** The last stretch of the log that was made into events. */
  #stretch: { readonly from: number; readonly to: number; readonly events: readonly StateEvent[] } | undefined;

  constructor(kind: Kind, floor: number) {
    this.kind = kind;
    this.log = new CommitLog(floor);
  }

  /** All resources in order; one frozen array until the next write. */
  list(): readonly Resource[] {
    if (this.#listed === undefined) {
      const items: Resource[] = [];
      this.ordered.forEach((entry) => {
        const value = entry.value;
        if (value !== undefined) items.push(value);
      });
      this.#listed = Object.freeze(items);
    }
    return this.#listed;
  }

  /** Those that match a query, in order. */
  select({ matches, ids, labels }: QueryPlan): readonly Resource[] {
    const items: Resource[] = [];
    const take = (entry: Entry): void => {
      const value = entry.value;
      if (value !== undefined && matches(value.metadata)) items.push(value);
    };
    if (ids?.exact) {
      const entry = this.entries.get(ids.prefix);
      if (entry !== undefined) take(entry);
    } else if (ids !== undefined) this.ordered.forEachFrom(ids.prefix, take);
    else {
      const labelled = labels && this.#labelled(labels);
      if (labelled === undefined) return Object.freeze(this.list().filter(({ metadata }) => matches(metadata)));
      const sorted = [...labelled];
      sortById(sorted);
      for (const entry of sorted) take(entry);
    }
    return Object.freeze(items);
  }

  /** The entries that the index of labels has; `undefined` when they are so many that to walk over all in order is less. */
  #labelled(labels: NonNullable<QueryPlan['labels']>): ReadonlySet<Entry> | undefined {
    const sets = labels.flatMap(({ key, values }) => this.#labels.find(key, values, this.entries.values()));
    if (sets.reduce((sum, { size }) => sum + size, 0) * 8 > this.entries.size) return undefined;
    const [first, ...others] = sets;
    if (others.length === 0) return first ?? new Set();
    return new Set(sets.flatMap((set) => [...set]));
  }

  /** The events of a stretch of the log; readers that go along together share one array. */
  events(from: number, to: number, bookmarks: Bookmarks): readonly StateEvent[] {
    if (this.#stretch?.from === from && this.#stretch.to === to) return this.#stretch.events;
    const events = Object.freeze(this.log.slice(from, to).map((commit) => commit.event(bookmarks)));
    this.#stretch = { from, to, events };
    return events;
  }

  /** The entry of an id, made when it is missing. */
  claim(id: string): Entry {
    let entry = this.entries.get(id);
    if (entry === undefined) {
      entry = new Entry(id);
      this.entries.set(id, entry);
    }
    return entry;
  }

  /** Puts in what was read from disk. `false` when the id is taken. */
  load(id: string, encoded: EncodedResource): boolean {
    if (this.entries.has(id)) return false;
    const entry = new LoadedEntry(id, encoded);
    this.entries.set(id, entry);
    this.ordered.add(entry);
    this.size++;
    return true;
  }

  /** Moves the served value. `entry` is the one of that id, if the caller has it. */
  apply(commit: Commit, entry = this.claim(commit.id)): void {
    this.#listed = undefined;
    const wasPresent = entry.present;
    entry.value = commit.value;
    this.#labels.moved(entry, commit.old, commit.value);
    if (commit.value !== undefined) {
      if (!wasPresent) {
        this.ordered.add(entry);
        this.size++;
      }
    } else if (wasPresent) {
      this.size--;
      this.ordered.noteGone();
      this.entries.delete(commit.id);
      // A create that is already staged on top goes on in an entry of its own.
      if (entry.staged !== undefined) {
        const next = this.claim(commit.id);
        next.staged = entry.staged;
      }
    }
    this.log.append(commit);
  }

  /** Forgets an entry that was only claimed. */
  release(entry: Entry): void {
    if (!entry.present && entry.staged === undefined && this.entries.get(entry.id) === entry) this.entries.delete(entry.id);
  }

  /** Nothing is here and nobody looks. */
  get idle(): boolean {
    return (
      this.establishing === 0 &&
      this.entries.size === 0 &&
      this.log.untouched &&
      this.kindWatchers.size === 0 &&
      this.pointerWatchers.size === 0
    );
  }
}
