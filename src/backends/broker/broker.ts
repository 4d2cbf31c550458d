import type { Environment } from '../../environment/index.ts';
import type { CompiledQuery, Kind, Metadata, Pointer, Resource, ResourceInput, SteadystateError, TypedKind } from '../../resource/index.ts';
import {
  assembleMetadata,
  assembleResource,
  checkKind,
  checkPointer,
  compileQuery,
  findError,
  invalid,
  makeResource,
} from '../../resource/index.ts';
import type {
  AggregatedWatch,
  Capabilities,
  CoreState,
  CreateOptions,
  DestroyOptions,
  EventSource,
  ListOptions,
  ReadOptions,
  ResourceList,
  UpdateOptions,
  Watch,
  WatchKindOptions,
  WatchOptions,
} from '../../state/index.ts';
import {
  alreadyExists,
  closed,
  createAggregatedWatch,
  createWatch,
  incarnationConflict,
  invalidBookmark,
  notFound,
  ownerConflict,
  pendingFinalizers,
  phaseConflict,
  unavailable,
  unsupported,
  versionConflict,
} from '../../state/index.ts';
import { Bookmarks } from './bookmark.ts';
import type { EncodedResource, Entry, StagedWrite } from './collection.ts';
import { Collection } from './collection.ts';
import { Commit } from './commit.ts';
import type { CommitRecord, Committer } from './committer.ts';
import type { WatcherHost } from './kind-watcher.ts';
import { KindWatcher } from './kind-watcher.ts';
import { PointerWatcher } from './pointer-watcher.ts';

export interface BrokerOptions {
  readonly environment: Environment;
  /** 32 hexadecimal digits; bookmarks of another store are refused by it. */
  readonly storeId: string;
  readonly capabilities: Capabilities;
  /** The newest revision that was handed out. @default 0 */
  readonly revision?: number;
  readonly committer?: Committer;
  /** Commits of a kind that are kept in memory at least. @default 4096 */
  readonly historySize?: number;
  /** Entries that all lagging watchers together may hold. @default 1_000_000 */
  readonly pendingLimit?: number;
  /** Idle kind watches get a fresh bookmark this often, milliseconds. @default 10_000 */
  readonly idleBookmarkMs?: number;
}

interface StagedRecord extends CommitRecord {
  readonly collection: Collection;
  readonly entry: Entry;
  readonly mark: StagedWrite;
}

/** Writes that become durable together. */
interface Batch {
  readonly records: StagedRecord[];
  readonly settled: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The core that the memory and the SQLite backend share: collections, one revision over all kinds, checks, and delivery.
 * Reads and checks are synchronous on shared frozen values. With a committer, writes are checked against what is
 * staged, and readers see what is durable.
 */
export class Broker implements CoreState, AsyncDisposable {
  readonly capabilities: Capabilities;
  readonly storeId: string;
  readonly #environment: Environment;
  readonly #committer: Committer | undefined;
  readonly #historySize: number;
  readonly #idleBookmarkMs: number;
  readonly #bookmarks: Bookmarks;
  readonly #host: WatcherHost;
  readonly #byNamespace = new Map<string, Map<string, Collection>>();
  readonly #watchers = new Set<KindWatcher | PointerWatcher>();
  readonly #wakeups: (() => void)[] = [];
  #delivering = false;
  /** The newest revision that readers see. */
  #revision: number;
  /** The newest revision that was given to a write. */
  #stagedRevision: number;
  #open: Batch | undefined;
  #committing: Promise<void> | undefined;
  #failure: SteadystateError | undefined;
  #idleTimer: Disposable | undefined;

  constructor(options: BrokerOptions) {
    this.capabilities = options.capabilities;
    this.storeId = options.storeId;
    this.#environment = options.environment;
    this.#committer = options.committer;
    this.#historySize = options.historySize ?? 4096;
    this.#idleBookmarkMs = options.idleBookmarkMs ?? 10_000;
    this.#bookmarks = new Bookmarks(options.storeId);
    this.#revision = options.revision ?? 0;
    this.#stagedRevision = this.#revision;
    const broker = this;
    this.#host = {
      bookmarks: this.#bookmarks,
      budget: { count: 0, limit: options.pendingLimit ?? 1_000_000 },
      get revision() {
        return broker.#revision;
      },
      wake: (callback) => this.#wakeups.push(callback),
      forget: (watcher) => this.#forget(watcher, []),
    };
  }

  /** The newest revision that readers see. */
  get revision(): number {
    return this.#revision;
  }

  /** Puts in a resource that was read from disk, before the first call. */
  load(kind: Kind, id: string, encoded: EncodedResource): void {
    this.#claim(kind).load(id, encoded);
  }

  get<Spec>(pointer: Pointer<Spec>, options?: ReadOptions): Promise<Resource<Spec>> {
    try {
      if (options?.signal?.aborted || this.#failure) this.#refuse(options?.signal);
      const value = this.#find(pointer)?.entries.get(pointer.id)?.value;
      if (value !== undefined) return Promise.resolve(value as Resource<Spec>);
      checkPointer(pointer);
      return Promise.reject(notFound(pointer));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async list<Spec>(kind: TypedKind<Spec>, options: ListOptions = {}): Promise<ResourceList<Spec>> {
    if (options.signal?.aborted || this.#failure) this.#refuse(options.signal);
    checkKind(kind);
    const query = compileQuery(options);
    const all = (this.#find(kind)?.list() ?? noItems) as readonly Resource<Spec>[];
    const items = query === undefined ? all : Object.freeze(all.filter((resource) => query(resource.metadata)));
    return Object.freeze({ items, revision: this.#revision });
  }

  async create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: CreateOptions = {}): Promise<Resource<Spec>> {
    this.#refuseWrite(options.signal);
    const resource = makeResource(input);
    const { metadata } = resource;
    const owner = options.owner ?? '';
    if (metadata.owner !== '' && metadata.owner !== owner) throw ownerConflict(metadata, owner, metadata.owner);
    const collection = this.#claim(metadata);
    const entry = collection.claim(metadata.id);
    const { staged } = entry;
    if (staged !== undefined ? staged.value !== undefined : entry.present) return this.#lose(staged, alreadyExists(metadata));
    return this.#write(collection, entry, undefined, resource, owner) as Promise<Resource<Spec>>;
  }

  async update<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: UpdateOptions = {}): Promise<Resource<Spec>> {
    this.#refuseWrite(options.signal);
    const resource = makeResource(input);
    const { metadata } = resource;
    const { collection, entry, current } = this.#current(metadata);
    if (entry === undefined || collection === undefined || current === undefined) return this.#lose(entry?.staged, notFound(metadata));
    const stored = current.metadata;
    const owner = options.owner ?? '';
    const expectedPhase = options.expectedPhase ?? 'running';
    let conflict: SteadystateError | undefined;
    if (owner !== stored.owner) conflict = ownerConflict(metadata, owner, stored.owner);
    else if (metadata.owner !== '' && metadata.owner !== stored.owner) conflict = ownerConflict(metadata, metadata.owner, stored.owner);
    else if ((options.currentVersion ?? metadata.version) !== stored.version)
      conflict = versionConflict(metadata, options.currentVersion ?? metadata.version, stored.version);
    else if (expectedPhase !== 'any' && stored.phase !== expectedPhase) conflict = phaseConflict(metadata, expectedPhase, stored.phase);
    else if (stored.phase === 'tearingDown' && metadata.phase === 'running') conflict = phaseConflict(metadata, 'running', stored.phase);
    if (conflict !== undefined) return this.#lose(entry.staged, conflict);
    return this.#write(collection, entry, current, resource, stored.owner) as Promise<Resource<Spec>>;
  }

  async destroy(pointer: Pointer, options: DestroyOptions = {}): Promise<void> {
    this.#refuseWrite(options.signal);
    checkPointer(pointer);
    const { collection, entry, current } = this.#current(pointer);
    if (entry === undefined || collection === undefined || current === undefined) return this.#lose(entry?.staged, notFound(pointer));
    const stored = current.metadata;
    const owner = options.owner ?? '';
    let conflict: SteadystateError | undefined;
    if (owner !== stored.owner) conflict = ownerConflict(pointer, owner, stored.owner);
    else if (options.uid !== undefined && options.uid !== stored.uid) conflict = incarnationConflict(pointer, options.uid, stored.uid);
    else if (stored.finalizers.length > 0) conflict = pendingFinalizers(pointer, stored.finalizers);
    if (conflict !== undefined) return this.#lose(entry.staged, conflict);
    await this.#write(collection, entry, current, undefined, stored.owner);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchOptions = {}): Promise<Watch<Spec>> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    this.#checkWatch(options);
    const collection = this.#claim(pointer);
    let history: readonly Commit[] | undefined;
    let revision = this.#revision;
    try {
      if (options.startFromBookmark !== undefined) {
        revision = this.#bookmarks.read(options.startFromBookmark);
        await this.#reach(collection, revision);
        history = this.#historyOf(collection, pointer.id, collection.log.after(revision));
      } else if (options.tailEvents !== undefined) {
        await this.#reachTail(collection);
        history = this.#historyOf(collection, pointer.id, collection.log.start).slice(-options.tailEvents || Number.POSITIVE_INFINITY);
        revision = this.#revision;
      }
    } catch (error) {
      this.#release(collection);
      throw error;
    }
    const watcher: PointerWatcher = new PointerWatcher(
      this.#host,
      collection,
      {
        pointer,
        strict: options.strict ?? false,
        present: collection.entries.get(pointer.id)?.value,
        revision,
        ...(history && { history }),
      },
      () => this.#forget(watcher, [collection]),
    );
    this.#watchers.add(watcher);
    return createWatch<Spec>(watcher, { environment: this.#environment, signal: options.signal });
  }

  async watchKind<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    return createWatch<Spec>(await this.#watchKinds([kind], options), { environment: this.#environment, signal: options.signal });
  }

  async watchKindAggregated<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<AggregatedWatch<Spec>> {
    return createAggregatedWatch<Spec>(await this.#watchKinds([kind], options), { environment: this.#environment, signal: options.signal });
  }

  async watchKinds(kinds: readonly Kind[], options: WatchKindOptions = {}): Promise<AggregatedWatch> {
    return createAggregatedWatch(await this.#watchKinds(kinds, options), { environment: this.#environment, signal: options.signal });
  }

  /** Ends all watches and refuses further calls. Writes that are on their way settle first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#failure ??= closed('the store was closed');
    await this.#committing?.catch(() => {});
    for (const watcher of this.#watchers) watcher.close();
    this.#idleTimer?.[Symbol.dispose]();
    this.#idleTimer = undefined;
  }

  /** After a failure that leaves the outcome on disk unknown: nothing is acknowledged any more, and every watch ends with the error. */
  poison(error: SteadystateError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    for (const watcher of this.#watchers) watcher.fail(error);
    this.#deliver();
  }

  #refuse(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #refuseWrite(signal: AbortSignal | undefined): void {
    if (signal?.aborted || this.#failure !== undefined) this.#refuse(signal);
  }

  #find(kind: Kind): Collection | undefined {
    return this.#byNamespace.get(kind.namespace)?.get(kind.type);
  }

  #claim(kind: Kind): Collection {
    let types = this.#byNamespace.get(kind.namespace);
    if (types === undefined) {
      types = new Map();
      this.#byNamespace.set(kind.namespace, types);
    }
    let collection = types.get(kind.type);
    if (collection === undefined) {
      collection = new Collection({ namespace: kind.namespace, type: kind.type }, this.#revision);
      types.set(kind.type, collection);
    }
    return collection;
  }

  #release(collection: Collection): void {
    if (!collection.idle) return;
    const { namespace, type } = collection.kind;
    const types = this.#byNamespace.get(namespace);
    if (types?.get(type) !== collection) return;
    types.delete(type);
    if (types.size === 0) this.#byNamespace.delete(namespace);
  }

  /** What the next write of a resource stands on: the staged value, else the durable one. */
  #current(pointer: Pointer): { readonly collection?: Collection; readonly entry?: Entry; readonly current?: Resource } {
    const collection = this.#find(pointer);
    const entry = collection?.entries.get(pointer.id);
    if (collection === undefined || entry === undefined) return {};
    const current = entry.staged === undefined ? entry.value : entry.staged.value;
    return { collection, entry, ...(current !== undefined && { current }) };
  }

  /** A write that loses against a staged one learns of it only when that one's fate is known. */
  async #lose(staged: StagedWrite | undefined, error: SteadystateError): Promise<never> {
    if (staged !== undefined) await staged.settled;
    throw error;
  }

  #write(
    collection: Collection,
    entry: Entry,
    old: Resource | undefined,
    next: Resource | undefined,
    owner: string,
  ): Promise<Resource | undefined> | Resource | undefined {
    const revision = this.#stagedRevision + 1;
    this.#stagedRevision = revision;
    const value = next === undefined ? undefined : this.#stamp(next, old?.metadata, revision, owner);
    if (this.#committer === undefined) {
      this.#apply(collection, new Commit(revision, entry.id, old, value));
      this.#deliver();
      return value;
    }
    this.#open ??= makeBatch();
    const { settled, records } = this.#open;
    const mark: StagedWrite = { value, settled };
    entry.staged = mark;
    records.push({ kind: collection.kind, revision, id: entry.id, value, old, collection, entry, mark });
    this.#committing ??= this.#commitAll();
    return settled.then(() => value);
  }

  #stamp(resource: Resource, old: Metadata | undefined, revision: number, owner: string): Resource {
    const { namespace, type, id, phase, finalizers, labels, annotations } = resource.metadata;
    const version = String(revision);
    const updated = this.#environment.timestamp();
    const metadata = assembleMetadata({
      namespace,
      type,
      id,
      version,
      uid: old?.uid ?? version,
      phase,
      owner,
      finalizers,
      labels,
      annotations,
      created: old?.created ?? updated,
      updated,
    });
    return assembleResource(metadata, resource.spec);
  }

  /** One batch after another: while one syncs, the next is staged. */
  async #commitAll(): Promise<void> {
    const committer = this.#committer as Committer;
    try {
      // Callers of one turn share the first batch.
      await Promise.resolve();
      while (this.#open !== undefined) {
        const batch = this.#open;
        this.#open = undefined;
        try {
          await committer.commit(batch.records);
        } catch (error) {
          this.#fail(batch, error);
          continue;
        }
        for (const record of batch.records) {
          if (record.entry.staged === record.mark) record.entry.staged = undefined;
          this.#apply(record.collection, new Commit(record.revision, record.id, record.old, record.value));
        }
        this.#deliver();
        batch.resolve();
      }
    } finally {
      this.#committing = undefined;
    }
  }

  /** Nothing of a failed batch happened; what was staged on top of it falls with it. */
  #fail(batch: Batch, cause: unknown): void {
    const error = findError(cause) ?? unavailable('the store could not write', cause);
    const later = this.#open;
    this.#open = undefined;
    for (const failed of later === undefined ? [batch] : [batch, later]) {
      for (const { entry, collection } of failed.records) {
        entry.staged = undefined;
        collection.release(entry);
      }
      failed.reject(error);
    }
    // Without room nothing was written, and reading and destroying go on. Any other failure leaves the disk in doubt.
    if (error.code !== 'NoSpace') this.poison(error);
  }

  #apply(collection: Collection, commit: Commit): void {
    this.#revision = commit.revision;
    collection.apply(commit);
    const { log } = collection;
    if (log.size >= this.#historySize * 2) {
      const place = log.end - this.#historySize;
      for (const watcher of collection.kindWatchers) watcher.beforeDrop(collection, place);
      log.drop(place - log.start);
    }
    for (const watcher of collection.lagging) watcher.note(collection, commit);
    const pointerWatchers = collection.pointerWatchers.get(commit.id);
    if (pointerWatchers !== undefined) for (const watcher of pointerWatchers) watcher.push(commit);
    for (const watcher of collection.waiting) if (watcher.concerns(commit)) watcher.wakeReader();
  }

  /** One loop that is never entered twice: a reader that writes only adds to it. */
  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      for (let callback = this.#wakeups.shift(); callback !== undefined; callback = this.#wakeups.shift()) callback();
    } finally {
      this.#delivering = false;
    }
  }

  #checkWatch(options: WatchKindOptions): void {
    const { tailEvents, startFromBookmark, bootstrapContents } = options;
    if (tailEvents !== undefined && (!Number.isSafeInteger(tailEvents) || tailEvents < 0))
      throw invalid([{ path: 'tailEvents', message: `expected a whole number from 0, found ${tailEvents}` }]);
    if (tailEvents !== undefined && startFromBookmark !== undefined)
      throw invalid([{ path: 'tailEvents', message: 'cannot be combined with startFromBookmark' }]);
    if (bootstrapContents === true && (tailEvents !== undefined || startFromBookmark !== undefined)) {
      throw invalid([{ path: 'bootstrapContents', message: 'cannot be combined with tailEvents or startFromBookmark' }]);
    }
  }

  async #watchKinds(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    this.#refuse(options.signal);
    for (const kind of kinds) checkKind(kind);
    this.#checkWatch(options);
    if (options.tailEvents !== undefined && kinds.length > 1) throw unsupported('tailEvents works on a watch of one kind');
    const query: CompiledQuery | undefined = compileQuery(options);
    const unique = new Map(kinds.map((kind) => [`${kind.type}\u0000${kind.namespace}`, kind]));
    const collections = [...unique.values()].map((kind) => this.#claim(kind));
    let afterRevision: number | undefined;
    try {
      if (options.startFromBookmark !== undefined) {
        afterRevision = this.#bookmarks.read(options.startFromBookmark);
        for (const collection of collections) await this.#reach(collection, afterRevision);
      } else if (options.tailEvents !== undefined) {
        for (const collection of collections) await this.#reachTail(collection);
      }
    } catch (error) {
      for (const collection of collections) this.#release(collection);
      throw error;
    }
    const watcher = new KindWatcher(this.#host, {
      collections,
      query,
      strict: options.strict ?? false,
      bootstrapContents: options.bootstrapContents ?? false,
      bootstrapBookmark: options.bootstrapBookmark ?? false,
      idleBookmarks: true,
      ...(afterRevision !== undefined && { afterRevision }),
      ...(options.tailEvents !== undefined && { tailEvents: options.tailEvents }),
    });
    this.#watchers.add(watcher);
    this.#armIdle();
    return watcher;
  }

  /** Makes the log of a kind reach back to a revision. InvalidBookmark when that is not possible. */
  async #reach(collection: Collection, revision: number): Promise<void> {
    if (revision > this.#revision)
      throw invalidBookmark(`the bookmark is of the future: revision ${revision}, the store is at ${this.#revision}`);
    if (revision >= collection.log.floor) return;
    const floor = this.#committer?.historyFloor ?? collection.log.floor;
    if (revision < floor)
      throw invalidBookmark(`the bookmark has expired: revision ${revision}, the history of ${collection.kind.type} begins after ${floor}`);
    await this.#loadHistory(collection, revision);
  }

  async #reachTail(collection: Collection): Promise<void> {
    if (this.#committer !== undefined && collection.log.floor > this.#committer.historyFloor)
      await this.#loadHistory(collection, this.#committer.historyFloor);
  }

  async #loadHistory(collection: Collection, afterRevision: number): Promise<void> {
    const upTo = collection.log.floor;
    const commits = await (this.#committer as Committer).history(collection.kind, afterRevision, upTo);
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
    this.#watchers.delete(watcher);
    for (const collection of collections) this.#release(collection);
    if (this.#idleTimer !== undefined && ![...this.#watchers].some((other) => other instanceof KindWatcher)) {
      this.#idleTimer[Symbol.dispose]();
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
      this.#deliver();
      if ([...this.#watchers].some((watcher) => watcher instanceof KindWatcher)) this.#armIdle();
    });
  }
}

const noItems: readonly Resource[] = Object.freeze([]);

function makeBatch(): Batch {
  let resolve = (): void => {};
  let reject = (_error: unknown): void => {};
  const settled = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  // Losers and writers attach later or never; a batch without any must not be an unhandled rejection.
  settled.catch(() => {});
  return { records: [], settled, resolve, reject };
}
