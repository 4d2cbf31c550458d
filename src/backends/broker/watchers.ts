import type { Environment } from '../../environment/index.ts';
import type { CompiledQuery, Kind, Pointer, SteadystateError } from '../../resource/index.ts';
import { checkKind, checkPointer, compileQuery } from '../../resource/index.ts';
import type { EventSource, WatchKindOptions, WatchOptions } from '../../state/index.ts';
import { checkWatchOptions, invalidBookmark, unsupported } from '../../state/index.ts';
import { Bookmarks } from './bookmark.ts';
import type { Collection } from './collection.ts';
import type { Commit } from './commit.ts';
import type { Committer } from './committer.ts';
import type { WatcherHost } from './kind-watcher.ts';
import { KindWatcher } from './kind-watcher.ts';
import type { Kinds } from './kinds.ts';
import { NamespaceWatcher } from './namespace-watcher.ts';
import { PointerWatcher } from './pointer-watcher.ts';

/** Readers that are woken before timers and input have their turn. */
const wakesPerBreath = 1024;

export interface WatchersOptions {
  readonly environment: Environment;
  readonly storeId: string;
  readonly kinds: Kinds;
  /** Remembers older commits; absent in memory. */
  readonly committer: Committer | undefined;
  /** Entries that all lagging watchers together may hold. */
  readonly pendingLimit: number;
  /** Idle kind watches get a fresh bookmark this often, milliseconds. */
  readonly idleBookmarkMs: number;
  /** The newest revision that readers see. */
  readonly revision: () => number;
}

/** Establishes the watches of a store, and delivers to them. */
export class Watchers {
  readonly #environment: Environment;
  readonly #kinds: Kinds;
  readonly #committer: Committer | undefined;
  readonly #idleBookmarkMs: number;
  readonly #revision: () => number;
  readonly #bookmarks: Bookmarks;
  readonly #host: WatcherHost;
  readonly #watchers = new Set<KindWatcher | PointerWatcher>();
  readonly #namespaceWatchers = new Map<string, Set<NamespaceWatcher>>();
  /** Bookmarks below this revision are expired, whatever is still in memory. */
  #forgotten = 0;
  #wakeups: (() => void)[] = [];
  #kindWatchers = 0;
  #delivering = false;
  /** Readers woken since the last breath. */
  #woken = 0;
  #breathing = false;
  #idleTimer: Disposable | undefined;

  constructor(options: WatchersOptions) {
    const { revision } = options;
    this.#environment = options.environment;
    this.#kinds = options.kinds;
    this.#committer = options.committer;
    this.#idleBookmarkMs = options.idleBookmarkMs;
    this.#revision = revision;
    this.#bookmarks = new Bookmarks(options.storeId);
    this.#host = {
      bookmarks: this.#bookmarks,
      budget: { count: 0, limit: options.pendingLimit },
      get revision() {
        return revision();
      },
      wake: (callback) => this.#wakeups.push(callback),
      forget: (watcher, collections) => this.#forget(watcher, collections),
    };
  }

  /** A watch of one resource. */
  async ofPointer(pointer: Pointer, options: WatchOptions): Promise<EventSource> {
    checkPointer(pointer);
    checkWatchOptions(options);
    const { startFromBookmark, tailEvents, strict = false } = options;
    const collection = this.#kinds.claim(pointer);
    return this.#establish(
      [collection],
      async () => {
        if (startFromBookmark !== undefined) await this.#reach(collection, this.#bookmarks.read(startFromBookmark));
        else if (tailEvents !== undefined) await this.#reachTail(collection, Number.POSITIVE_INFINITY);
      },
      () => {
        const { log } = collection;
        const revision = startFromBookmark === undefined ? this.#revision() : this.#bookmarks.read(startFromBookmark);
        if (revision < log.floor && startFromBookmark !== undefined) throw expired(collection.kind, revision, log.floor);
        let history: readonly Commit[] | undefined;
        if (startFromBookmark !== undefined) history = this.#historyOf(collection, pointer.id, log.after(revision));
        else if (tailEvents !== undefined) {
          history = this.#historyOf(collection, pointer.id, log.start).slice(-tailEvents || Number.POSITIVE_INFINITY);
        }
        const present = collection.entries.get(pointer.id)?.value;
        const watcher: PointerWatcher = new PointerWatcher(
          this.#host,
          collection,
          { pointer, strict, present, revision, ...(history && { history }) },
          () => this.#forget(watcher, [collection]),
        );
        this.#watchers.add(watcher);
        return watcher;
      },
    );
  }

  /** A watch of all of one kind, or of several. */
  async ofKinds(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    for (const kind of kinds) checkKind(kind);
    checkWatchOptions(options);
    if (options.tailEvents !== undefined && kinds.length > 1) throw unsupported('tailEvents works on a watch of one kind');
    const query: CompiledQuery | undefined = compileQuery(options);
    const unique = new Map(kinds.map((kind) => [`${kind.type}\u0000${kind.namespace}`, kind]));
    const { startFromBookmark, tailEvents } = options;
    const afterRevision = startFromBookmark && this.#bookmarks.read(startFromBookmark);
    const collections = [...unique.values()].map((kind) => this.#kinds.claim(kind));
    return this.#establish(
      collections,
      async () => {
        for (const collection of collections) {
          if (afterRevision !== undefined) await this.#reach(collection, afterRevision);
          else if (tailEvents !== undefined) await this.#reachTail(collection, tailEvents);
        }
      },
      () => {
        for (const { kind, log } of collections)
          if (afterRevision !== undefined && afterRevision < log.floor) throw expired(kind, afterRevision, log.floor);
        const watcher = new KindWatcher(this.#host, {
          collections,
          query,
          strict: options.strict ?? false,
          bootstrapContents: options.bootstrapContents ?? false,
          bootstrapBookmark: options.bootstrapBookmark ?? false,
          ...(afterRevision !== undefined && { afterRevision }),
          ...(tailEvents !== undefined && { tailEvents }),
        });
        this.#watchers.add(watcher);
        this.#kindWatchers++;
        this.#armIdle();
        return watcher;
      },
    );
  }

  /** A watch of the namespaces in which a type has resources. */
  ofNamespaces(type: string): EventSource {
    checkKind({ namespace: 'any', type });
    let watchers = this.#namespaceWatchers.get(type);
    if (watchers === undefined) {
      watchers = new Set();
      this.#namespaceWatchers.set(type, watchers);
    }
    const watcher: NamespaceWatcher = new NamespaceWatcher(this.#host, {
      namespaces: this.#kinds.namespacesOf(type),
      isPresent: (namespace) => (this.#kinds.find({ namespace, type })?.size ?? 0) > 0,
      forget: () => {
        watchers.delete(watcher);
        if (watchers.size === 0) this.#namespaceWatchers.delete(type);
      },
    });
    watchers.add(watcher);
    return watcher;
  }

  /** A kind has got its first resource, or lost its last. */
  namespaceChanged({ namespace, type }: Kind): void {
    for (const watcher of this.#namespaceWatchers.get(type) ?? []) watcher.note(namespace);
  }

  /** Events up to a revision were dropped on purpose: from now on no watch begins before it. */
  forgetUpTo(revision: number): void {
    this.#forgotten = Math.max(this.#forgotten, revision);
  }

  closeAll(): void {
    for (const watcher of this.#all()) watcher.close();
    this.#idleTimer?.[Symbol.dispose]();
    this.#idleTimer = undefined;
  }

  /** Every watch ends with this error. */
  failAll(error: SteadystateError): void {
    for (const watcher of this.#all()) watcher.fail(error);
    this.deliver();
  }

  #all(): readonly (KindWatcher | PointerWatcher | NamespaceWatcher)[] {
    return [...this.#watchers, ...[...this.#namespaceWatchers.values()].flatMap((watchers) => [...watchers])];
  }

  /**
   * One loop that is never entered twice: a reader that writes only adds to it. Many readers of a writer without a pause
   * have their turn after a breath, and then take what came meanwhile as one batch.
   */
  deliver(): void {
    if (this.#delivering || this.#breathing) return;
    this.#delivering = true;
    try {
      while (this.#wakeups.length > 0) {
        if (this.#woken >= wakesPerBreath) return this.#breathe();
        const callbacks = this.#wakeups;
        this.#wakeups = [];
        this.#woken += callbacks.length;
        for (const callback of callbacks) this.#call(callback);
      }
    } finally {
      this.#delivering = false;
    }
  }

  /** A reader that throws must not keep the others from theirs. */
  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#environment.log.log('error', 'what was called back by a watch failed', { error });
    }
  }

  #breathe(): void {
    this.#breathing = true;
    void this.#environment.breathe().then(() => {
      this.#breathing = false;
      this.#woken = 0;
      this.deliver();
    });
  }

  /**
   * Looks for the place where a watch begins, then makes it at once: nothing is committed between. Meanwhile its
   * collections stay those that writes go to.
   */
  async #establish(collections: readonly Collection[], look: () => Promise<void>, make: () => EventSource): Promise<EventSource> {
    for (const collection of collections) collection.establishing++;
    let made = false;
    try {
      await look();
      const source = make();
      made = true;
      return source;
    } finally {
      for (const collection of collections) {
        collection.establishing--;
        if (!made) this.#kinds.release(collection);
      }
    }
  }

  /** Makes the log of a kind reach back to a revision. InvalidBookmark when that is not possible. */
  async #reach(collection: Collection, revision: number): Promise<void> {
    if (revision > this.#revision())
      throw invalidBookmark(`the bookmark is of the future: revision ${revision}, the store is at ${this.#revision()}`);
    if (revision < this.#forgotten) throw expired(collection.kind, revision, this.#forgotten);
    if (revision >= collection.log.floor) return;
    const floor = this.#committer?.historyFloor ?? collection.log.floor;
    if (revision < floor) throw expired(collection.kind, revision, floor);
    await this.#loadHistory(collection, revision);
  }

  async #reachTail(collection: Collection, count: number): Promise<void> {
    if (this.#committer === undefined || collection.log.size >= count) return;
    const floor = this.#committer.historyFloor;
    if (collection.log.floor > floor) await this.#loadHistory(collection, floor);
  }

  async #loadHistory(collection: Collection, afterRevision: number): Promise<void> {
    const upTo = collection.log.floor;
    const committer = this.#committer as Committer;
    const commits = await committer.history(collection.kind, afterRevision, upTo);
    // A compaction on the way has taken some of them.
    if (afterRevision < committer.historyFloor) throw expired(collection.kind, afterRevision, committer.historyFloor);
    // Meanwhile another watch may have loaded more, or the log may have dropped some.
    if (collection.log.floor !== upTo)
      return collection.log.floor > afterRevision ? this.#loadHistory(collection, afterRevision) : undefined;
    collection.log.prepend(commits, afterRevision);
  }

  #historyOf(collection: Collection, id: string, from: number): readonly Commit[] {
    const commits: Commit[] = [];
    for (let place = from; place < collection.log.end; place++) {
      const commit = collection.log.at(place);
      if (commit?.id === id) commits.push(commit);
    }
    return commits;
  }

  #forget(watcher: KindWatcher | PointerWatcher, collections: readonly Collection[]): void {
    if (!this.#watchers.delete(watcher)) return;
    for (const collection of collections) this.#kinds.release(collection);
    if (watcher instanceof KindWatcher && --this.#kindWatchers === 0) {
      this.#idleTimer?.[Symbol.dispose]();
      this.#idleTimer = undefined;
    }
  }

  #armIdle(): void {
    this.#idleTimer ??= this.#environment.after(this.#idleBookmarkMs, () => {
      this.#idleTimer = undefined;
      for (const watcher of this.#watchers) {
        if (!(watcher instanceof KindWatcher)) continue;
        if (!watcher.active) watcher.idle();
        watcher.active = false;
      }
      this.deliver();
      if (this.#kindWatchers > 0) this.#armIdle();
    });
  }
}

function expired({ type }: Kind, revision: number, floor: number): SteadystateError {
  return invalidBookmark(`the bookmark has expired: revision ${revision}, the history of ${type} begins after ${floor}`);
}
