import type { CompiledQuery, Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';
import type { Bookmarks } from './bookmark.ts';
import type { Collection } from './collection.ts';
import type { Commit } from './commit.ts';
import { transitionEvent } from './commit.ts';
import type { Fold } from './folds.ts';
import { Folds } from './folds.ts';
import type { PendingBudget } from './pending.ts';
import { mayBeKnown, Pending, resyncEvent } from './pending.ts';

/** What a watcher needs of its broker. */
export interface WatcherHost {
  readonly bookmarks: Bookmarks;
  readonly budget: PendingBudget;
  /** The newest revision that readers see. */
  readonly revision: number;
  /** Calls back in the one delivery loop. */
  wake(callback: () => void): void;
  forget(watcher: KindWatcher, collections: readonly Collection[]): void;
}

export interface KindWatcherStart {
  readonly collections: readonly Collection[];
  readonly query: CompiledQuery | undefined;
  readonly strict: boolean;
  /** Resume after this revision; absent: from now. */
  readonly afterRevision?: number;
  /** The newest n commits first. */
  readonly tailEvents?: number;
  readonly bootstrapContents: boolean;
  readonly bootstrapBookmark: boolean;
}

interface Part {
  readonly collection: Collection;
  /** Place in the collection's log of the next commit to deliver. */
  cursor: number;
}

/** A watch over all of one kind, or several: a reader of their logs that costs nothing while it keeps up. */
export class KindWatcher implements EventSource {
  readonly #host: WatcherHost;
  readonly #parts: readonly Part[];
  readonly #query: CompiledQuery | undefined;
  readonly #strict: boolean;
  /** Contents still to be given, kind by kind. */
  #snapshot:
    | {
        readonly lists: readonly (readonly Resource[])[];
        list: number;
        index: number;
        readonly revision: number;
        readonly resync: boolean;
        /** The reader may know of what was there at this revision, and nobody can tell what of it. */
        readonly unsureSince?: number;
      }
    | undefined;
  #afterSnapshot: StateEvent[] = [];
  /** What was dropped from the log before it was read. */
  #pending: Pending | undefined;
  /** Where the rest of that begins, among what all lagging watchers of the kind share. */
  #unread: Fold | undefined;
  /** The newest revision in there. */
  #absorbed = 0;
  /** The last bookmark that was given, or the place where the watch began; negative: none before `bootstrapped`. */
  #safe: number;
  #callbacks: (() => void)[] = [];
  #error: SteadystateError | undefined;
  /** Something was delivered since the last look of the idle timer. */
  active = true;
  ended = false;

  constructor(host: WatcherHost, start: KindWatcherStart) {
    this.#host = host;
    this.#query = start.query;
    this.#strict = start.strict;
    const { revision } = host;
    this.#parts = start.collections.map((collection) => ({
      collection,
      cursor:
        start.afterRevision !== undefined
          ? collection.log.after(start.afterRevision)
          : Math.max(collection.log.start, collection.log.end - (start.tailEvents ?? 0)),
    }));
    // Where the first event to come is the next one: a tail begins before now.
    const begin = start.afterRevision ?? this.#parts[0]?.collection.log.before(this.#parts[0].cursor) ?? revision;
    this.#safe = start.bootstrapContents ? -1 : begin;
    if (start.bootstrapContents) {
      this.#snapshot = { lists: start.collections.map((collection) => collection.list()), list: 0, index: 0, revision, resync: false };
      this.#afterSnapshot.push(this.#marker('bootstrapped', revision));
    }
    if (start.bootstrapBookmark) this.#afterSnapshot.push(this.#marker('noop', begin));
    for (const part of this.#parts) part.collection.kindWatchers.add(this);
  }

  take(max: number): readonly StateEvent[] {
    if (this.ended) return noEvents;
    const plain = this.#pending === undefined && this.#unread === undefined;
    if (plain && this.#snapshot === undefined && this.#afterSnapshot.length === 0 && this.#error === undefined) {
      const shared = this.#takeShared(max);
      if (shared !== undefined) return shared;
    }
    const events: StateEvent[] = [];
    this.#takeSnapshot(events, max);
    while (this.#snapshot === undefined && this.#afterSnapshot.length > 0 && events.length < max) {
      const marker = this.#afterSnapshot.shift() as StateEvent;
      this.#safe = marker.revision ?? this.#safe;
      events.push(marker);
    }
    if (this.#error !== undefined && events.length < max) {
      events.push({ type: 'errored', error: this.#error });
      this.close();
      return events;
    }
    if (this.#snapshot === undefined && events.length < max) {
      if (this.#unread !== undefined) this.#readFolds(this.#unread);
      if (this.#pending !== undefined) this.#takePending(events, max);
      if (this.#pending === undefined && this.#snapshot === undefined) this.#takeLog(events, max);
    }
    if (events.length > 0) this.active = true;
    return events;
  }

  whenReady(callback: () => void): void {
    if (this.ended || this.#hasSome()) return callback();
    this.#callbacks.push(callback);
    for (const part of this.#parts) part.collection.waiting.add(this);
  }

  close(): void {
    if (this.ended) return;
    this.ended = true;
    this.#pending?.clear();
    if (this.#unread !== undefined) this.#parts[0]?.collection.folds?.release(this.#unread);
    this.#unread = undefined;
    this.#snapshot = undefined;
    for (const part of this.#parts) {
      part.collection.kindWatchers.delete(this);
      part.collection.waiting.delete(this);
    }
    this.#host.forget(
      this,
      this.#parts.map((part) => part.collection),
    );
    this.#release();
  }

  /** The store failed or was closed. */
  fail(error: SteadystateError): void {
    if (this.ended || this.#error !== undefined) return;
    this.#error = error;
    this.#release();
  }

  /** A commit was appended and this watcher's reader waits: whether it has to be woken. */
  concerns(commit: Commit): boolean {
    if (this.#query === undefined || this.#pending !== undefined) return true;
    if (
      (commit.value !== undefined && this.#query(commit.value.metadata)) ||
      (commit.old !== undefined && this.#query(commit.old.metadata))
    )
      return true;
    // It waits, so it had read everything: step over what does not concern it.
    this.#skip();
    return false;
  }

  wakeReader(): void {
    for (const part of this.#parts) part.collection.waiting.delete(this);
    for (let callback = this.#callbacks.shift(); callback !== undefined; callback = this.#callbacks.shift()) this.#host.wake(callback);
  }

  /** Commits before `place` are about to be dropped: what is not read yet is kept by id from now on. */
  beforeDrop(collection: Collection, place: number): void {
    const part = this.#parts.find((candidate) => candidate.collection === collection);
    // What is shared goes on by itself.
    if (part === undefined || this.#unread !== undefined || part.cursor >= place || this.ended) return;
    if (this.#strict) {
      this.#pending = undefined;
      for (const each of this.#parts) each.cursor = each.collection.log.end;
      return this.fail(
        new SteadystateError(
          'Gone',
          `a strict watch of ${collection.kind.type} in ${collection.kind.namespace} fell too far behind; list again and watch from there`,
        ),
      );
    }
    if (this.#parts.length > 1) return this.#absorb(collection.log.at(place)?.revision ?? Number.POSITIVE_INFINITY);
    collection.folds ??= new Folds(this.#host.budget);
    const { folds, log } = collection;
    if (part.cursor === Math.max(log.start, folds.end)) this.#unread = folds.begin();
    else {
      // The first stretch is its own; from the next one on it is everybody's.
      this.#absorb(log.at(place)?.revision ?? Number.POSITIVE_INFINITY);
      this.#unread = folds.beginAfter();
    }
  }

  /** Takes over what was dropped meanwhile. */
  #readFolds(start: Fold): void {
    const part = this.#parts[0] as Part;
    const folds = part.collection.folds as Folds;
    this.#pending ??= new Pending(this.#host.budget, this.#query, start.since);
    folds.tell(start, this.#pending);
    folds.release(start);
    this.#unread = undefined;
    this.#absorbed = Math.max(this.#absorbed, folds.lastRevision);
    part.cursor = folds.end;
  }

  /** Keeps by id what is not read yet and stands below a revision, in the order of all kinds. */
  #absorb(below: number): void {
    let next = this.#nextCommit();
    this.#pending ??= new Pending(this.#host.budget, this.#query, (next?.commit.revision ?? this.#host.revision) - 1);
    for (; next !== undefined && next.commit.revision < below; next = this.#nextCommit()) {
      const { part, commit } = next;
      this.#pending.add(this.#parts.length === 1 ? commit.id : pendingKey(part.collection, commit), commit);
      this.#absorbed = commit.revision;
      part.cursor++;
    }
  }

  /** A fresh bookmark for a watcher that had nothing to read for a while. */
  idle(): void {
    if (this.ended || this.#hasSome() || this.#safe >= this.#host.revision) return;
    this.#skip();
    this.#afterSnapshot.push(this.#marker('noop', this.#host.revision));
    this.wakeReader();
  }

  #marker(type: 'bootstrapped' | 'noop', revision: number): StateEvent {
    return Object.freeze({ type, revision, bookmark: this.#host.bookmarks.at(revision) });
  }

  #hasSome(): boolean {
    if (this.#snapshot !== undefined || this.#afterSnapshot.length > 0 || this.#error !== undefined) return true;
    if (this.#pending !== undefined && (this.#pending.size > 0 || this.#pending.snapshotNeeded)) return true;
    return this.#parts.some((part) => part.cursor < part.collection.log.end);
  }

  #release(): void {
    for (const part of this.#parts) part.collection.waiting.delete(this);
    for (const callback of this.#callbacks.splice(0)) callback();
  }

  #skip(): void {
    for (const part of this.#parts) part.cursor = part.collection.log.end;
  }

  #takeSnapshot(events: StateEvent[], max: number): void {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) return;
    for (; snapshot.list < snapshot.lists.length; snapshot.list++, snapshot.index = 0) {
      const list = snapshot.lists[snapshot.list] as readonly Resource[];
      for (; snapshot.index < list.length; snapshot.index++) {
        if (events.length >= max) return;
        const resource = list[snapshot.index] as Resource;
        const matches = this.#query === undefined || this.#query(resource.metadata);
        if (!matches && snapshot.unsureSince !== undefined && mayBeKnown(resource, snapshot.unsureSince))
          events.push(resyncEvent({ type: 'destroyed', resource }, snapshot.revision, this.#safe, this.#host.bookmarks));
        if (matches) {
          // No new bookmark: nobody may resume in the middle of the contents.
          events.push(
            snapshot.resync
              ? resyncEvent({ type: 'created', resource }, snapshot.revision, this.#safe, this.#host.bookmarks)
              : Object.freeze({ type: 'created', resource, revision: snapshot.revision }),
          );
        }
      }
    }
    this.#snapshot = undefined;
  }

  #takePending(events: StateEvent[], max: number): void {
    const pending = this.#pending as Pending;
    // One step from what was read last to what is now; a snapshot, too, needs to know what went until this moment.
    this.#absorb(Number.POSITIVE_INFINITY);
    events.push(...pending.take(max - events.length, this.#safe, this.#host.bookmarks));
    if (pending.size > 0) return;
    this.#pending = undefined;
    if (pending.snapshotNeeded) {
      const { revision } = this.#host;
      this.#snapshot = {
        lists: this.#parts.map((part) => part.collection.list()),
        list: 0,
        index: 0,
        revision,
        resync: true,
        ...(pending.unsureSince !== undefined && { unsureSince: pending.unsureSince }),
      };
      this.#afterSnapshot.push(
        Object.freeze({ type: 'noop', revision, bookmark: this.#host.bookmarks.at(revision), resync: true }) as StateEvent,
      );
    } else this.#safe = Math.max(this.#safe, this.#absorbed);
  }

  /** The next stretch of the log as it is, where nobody has to look at each commit. */
  #takeShared(max: number): readonly StateEvent[] | undefined {
    const part = this.#parts[0];
    if (this.#query !== undefined || this.#parts.length > 1 || part === undefined) return undefined;
    const { log } = part.collection;
    const end = Math.min(log.end, part.cursor + max);
    if (part.cursor === end) return noEvents;
    const events = part.collection.events(part.cursor, end, this.#host.bookmarks);
    part.cursor = end;
    this.#safe = events[events.length - 1]?.revision ?? this.#safe;
    this.active = true;
    return events;
  }

  #takeLog(events: StateEvent[], max: number): void {
    for (let next = this.#nextCommit(); next !== undefined && events.length < max; next = this.#nextCommit()) {
      next.part.cursor++;
      const event = this.#eventOf(next.commit);
      if (event !== undefined) events.push(event);
    }
    const last = events.at(-1);
    if (last?.revision !== undefined && last.revision > this.#safe) this.#safe = last.revision;
  }

  #nextCommit(): { readonly part: Part; readonly commit: Commit } | undefined {
    let found: { readonly part: Part; readonly commit: Commit } | undefined;
    for (const part of this.#parts) {
      const commit = part.collection.log.at(part.cursor);
      if (commit !== undefined && (found === undefined || commit.revision < found.commit.revision)) found = { part, commit };
    }
    return found;
  }

  #eventOf(commit: Commit): StateEvent | undefined {
    const { bookmarks } = this.#host;
    const query = this.#query;
    if (query === undefined) return commit.event(bookmarks);
    const before = commit.old !== undefined && query(commit.old.metadata);
    const after = commit.value !== undefined && query(commit.value.metadata);
    if (before && (after || commit.value === undefined)) return commit.event(bookmarks);
    if (after)
      return commit.old === undefined
        ? commit.event(bookmarks)
        : transitionEvent('created', commit.value as Resource, commit.revision, bookmarks);
    return before ? transitionEvent('destroyed', commit.value as Resource, commit.revision, bookmarks) : undefined;
  }
}

const noEvents: readonly StateEvent[] = Object.freeze([]);

function pendingKey(collection: Collection, commit: Commit): string {
  return `${collection.kind.type}\u0000${collection.kind.namespace}\u0000${commit.id}`;
}
