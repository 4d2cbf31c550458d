import type { Pointer, Resource } from '../../resource/index.ts';
import { SteadystateError, tombstone } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';
import type { Collection } from './collection.ts';
import type { Commit } from './commit.ts';
import type { WatcherHost } from './kind-watcher.ts';
import { Pending } from './pending.ts';

/** Most commits of one id that wait for a reader before they are merged. */
const queueLimit = 128;
/** A watcher of one id holds one entry at most: no common cap is needed. */
const unlimited = { count: 0, limit: Number.POSITIVE_INFINITY };

export interface PointerWatcherStart {
  readonly pointer: Pointer;
  readonly strict: boolean;
  /** Commits to give before live ones; absent: the present value first. */
  readonly history?: readonly Commit[];
  readonly present: Resource | undefined;
  /** The place where the watch begins. */
  readonly revision: number;
}

/** A watch of one resource. */
export class PointerWatcher implements EventSource {
  readonly #host: Pick<WatcherHost, 'bookmarks' | 'wake'>;
  readonly #collection: Collection;
  readonly #id: string;
  readonly #strict: boolean;
  #first: StateEvent | undefined;
  #queue: Commit[];
  #pending: Pending | undefined;
  #safe: number;
  #callbacks: (() => void)[] = [];
  #error: SteadystateError | undefined;
  readonly #forget: () => void;
  ended = false;

  constructor(host: Pick<WatcherHost, 'bookmarks' | 'wake'>, collection: Collection, start: PointerWatcherStart, forget: () => void) {
    this.#host = host;
    this.#collection = collection;
    this.#id = start.pointer.id;
    this.#strict = start.strict;
    this.#queue = [...(start.history ?? [])];
    this.#safe = start.revision;
    this.#forget = forget;
    if (start.history === undefined) {
      const at = { revision: start.revision, bookmark: host.bookmarks.at(start.revision) };
      this.#first = Object.freeze(
        start.present === undefined
          ? { type: 'destroyed', resource: tombstone(start.pointer), ...at }
          : { type: 'created', resource: start.present, ...at },
      );
    }
    const watchers = collection.pointerWatchers.get(this.#id);
    if (watchers === undefined) collection.pointerWatchers.set(this.#id, new Set([this]));
    else watchers.add(this);
  }

  push(commit: Commit): void {
    if (this.#pending === undefined && this.#queue.length < queueLimit) this.#queue.push(commit);
    else if (this.#strict) {
      this.#queue = [];
      this.fail(new SteadystateError('Gone', `a strict watch of ${this.#id} fell too far behind; read it again and watch from there`));
    } else {
      this.#pending ??= new Pending(unlimited, undefined, 0);
      for (const earlier of this.#queue) this.#pending.add(this.#id, earlier);
      this.#queue = [];
      this.#pending.add(this.#id, commit);
    }
    for (const callback of this.#callbacks.splice(0)) this.#host.wake(callback);
  }

  take(max: number): readonly StateEvent[] {
    if (this.ended) return [];
    const events: StateEvent[] = [];
    if (this.#first !== undefined) {
      events.push(this.#first);
      this.#first = undefined;
    }
    if (this.#error !== undefined) {
      events.push({ type: 'errored', error: this.#error });
      this.close();
      return events;
    }
    const { bookmarks } = this.#host;
    if (this.#pending !== undefined) {
      events.push(...this.#pending.take(max, this.#safe, bookmarks));
      this.#pending = undefined;
    }
    if (events.length < max) for (const commit of this.#queue.splice(0, max - events.length)) events.push(commit.event(bookmarks));
    this.#safe = events.at(-1)?.revision ?? this.#safe;
    return events;
  }

  whenReady(callback: () => void): void {
    const some = this.#first !== undefined || this.#queue.length > 0 || (this.#pending?.size ?? 0) > 0 || this.#error !== undefined;
    if (this.ended || some) callback();
    else this.#callbacks.push(callback);
  }

  close(): void {
    if (this.ended) return;
    this.ended = true;
    this.#pending?.clear();
    this.#queue = [];
    const watchers = this.#collection.pointerWatchers.get(this.#id);
    watchers?.delete(this);
    if (watchers?.size === 0) this.#collection.pointerWatchers.delete(this.#id);
    this.#forget();
    for (const callback of this.#callbacks.splice(0)) callback();
  }

  fail(error: SteadystateError): void {
    if (this.ended || this.#error !== undefined) return;
    this.#error = error;
    for (const callback of this.#callbacks.splice(0)) callback();
  }
}
