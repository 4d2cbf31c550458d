import { addAbortListener } from 'node:events';
import type { Environment } from '../../environment/index.ts';
import type { CompiledQuery, Kind, Metadata, Pointer, Resource, ResourceInput, TypedKind } from '../../resource/index.ts';
import {
  assembleMetadata,
  assembleResource,
  checkKind,
  checkPointer,
  compileQuery,
  findError,
  makeResource,
  pointerText,
  SteadystateError,
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
  ambiguous,
  checkWatchOptions,
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
  readonly mark: StagedWrite;
}

/** Writes that become durable together. */
interface Batch {
  readonly records: StagedRecord[];
  /** Never rejects: the failure is its value, and every writer words it for itself. */
  readonly settled: Promise<SteadystateError | undefined>;
  readonly settle: (failure: SteadystateError | undefined) => void;
  /** It went to the disk. */
  submitted: boolean;
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
  #wakeups: (() => void)[] = [];
  #kindWatchers = 0;
  /** Where the store began: a kind without commits since then has lost none of them. */
  readonly #baseRevision: number;
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
    this.#baseRevision = this.#revision;
    const broker = this;
    this.#host = {
      bookmarks: this.#bookmarks,
      budget: { count: 0, limit: options.pendingLimit ?? 1_000_000 },
      get revision() {
        return broker.#revision;
      },
      wake: (callback) => this.#wakeups.push(callback),
      forget: (watcher, collections) => this.#forget(watcher, collections),
    };
  }

  /** The newest revision that readers see. */
  get revision(): number {
    return this.#revision;
  }

  /** Puts in a resource that was read from disk, before the first call. `false` when it is there already. */
  load(kind: Kind, id: string, encoded: EncodedResource): boolean {
    return this.#claim(kind).load(id, encoded);
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
    return this.#write(collection, entry, undefined, resource, owner, options.signal) as Promise<Resource<Spec>>;
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
    return this.#write(collection, entry, current, resource, stored.owner, options.signal) as Promise<Resource<Spec>>;
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
    await this.#write(collection, entry, current, undefined, stored.owner, options.signal);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchOptions = {}): Promise<Watch<Spec>> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    checkWatchOptions(options);
    const collection = this.#claim(pointer);
    let history: readonly Commit[] | undefined;
    let revision = this.#revision;
    try {
      if (options.startFromBookmark !== undefined) {
        revision = this.#bookmarks.read(options.startFromBookmark);
        await this.#reach(collection, revision);
        history = this.#historyOf(collection, pointer.id, collection.log.after(revision));
      } else if (options.tailEvents !== undefined) {
        await this.#reachTail(collection, Number.POSITIVE_INFINITY);
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
      collection = new Collection({ namespace: kind.namespace, type: kind.type }, this.#baseRevision);
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
    const failure = await staged?.settled;
    throw failure === undefined ? error : refusal(failure, error.pointer);
  }

  #write(
    collection: Collection,
    entry: Entry,
    old: Resource | undefined,
    next: Resource | undefined,
    owner: string,
    signal: AbortSignal | undefined,
  ): Promise<Resource | undefined> | Resource | undefined {
    const revision = this.#stagedRevision + 1;
    this.#stagedRevision = revision;
    const value = next === undefined ? undefined : this.#stamp(next, old?.metadata, revision, owner);
    if (this.#committer === undefined) {
      this.#apply(collection, new Commit(revision, entry.id, old, value), entry);
      this.#deliver();
      return value;
    }
    this.#open ??= makeBatch();
    const batch = this.#open;
    const mark: StagedWrite = { value, settled: batch.settled };
    entry.staged = mark;
    batch.records.push({ kind: collection.kind, revision, id: entry.id, value, old, collection, mark });
    this.#committing ??= this.#commitAll();
    const pointer = { ...collection.kind, id: entry.id };
    const done = batch.settled.then((failure) => {
      if (failure === undefined) return value;
      throw batch.submitted ? about(failure, pointer) : refusal(failure, pointer);
    });
    return signal === undefined ? done : orAmbiguous(done, pointer, signal);
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
        batch.submitted = true;
        try {
          await committer.commit(batch.records);
        } catch (error) {
          this.#fail(batch, error);
          continue;
        }
        for (const record of batch.records) {
          this.#unstage(record);
          this.#apply(record.collection, new Commit(record.revision, record.id, record.old, record.value));
        }
        this.#deliver();
        batch.settle(undefined);
        // Who was just acknowledged may write again: one sync for all is better than two groups that take turns.
        for (let turn = 0; turn < turnsToJoin && this.#open !== undefined; turn++) await undefined;
      }
    } finally {
      this.#committing = undefined;
    }
  }

  #unstage({ collection, id, mark }: StagedRecord): void {
    const entry = collection.entries.get(id);
    if (entry?.staged === mark) entry.staged = undefined;
  }

  /** Readers never saw a failed batch; what was staged on top of it falls with it. */
  #fail(batch: Batch, cause: unknown): void {
    const error = findError(cause) ?? unavailable('the store could not write', cause);
    const later = this.#open;
    this.#open = undefined;
    const failed = later === undefined ? [batch] : [batch, later];
    for (const { records } of failed) {
      for (const { collection, id } of records) {
        const entry = collection.entries.get(id);
        if (entry === undefined) continue;
        entry.staged = undefined;
        collection.release(entry);
        this.#release(collection);
      }
    }
    // Without room nothing was written, and reading and destroying go on. Any other failure leaves the disk in doubt.
    if (error.code === 'NoSpace') this.#stagedRevision = this.#revision;
    else this.poison(refusal(error, undefined));
    for (const { settle } of failed) settle(error);
  }

  #apply(collection: Collection, commit: Commit, entry?: Entry): void {
    this.#revision = commit.revision;
    collection.apply(commit, entry);
    // Before the drop: who starts to lag there reads this commit from the log, and must not note it once more.
    for (const watcher of collection.lagging) watcher.note(collection, commit);
    const { log } = collection;
    if (log.size >= this.#historySize * 2) {
      const place = log.end - this.#historySize;
      for (const watcher of collection.kindWatchers) watcher.beforeDrop(collection, place);
      log.drop(place - log.start);
    }
    const pointerWatchers = collection.pointerWatchers.get(commit.id);
    if (pointerWatchers !== undefined) for (const watcher of pointerWatchers) watcher.push(commit);
    for (const watcher of collection.waiting) if (watcher.concerns(commit)) watcher.wakeReader();
  }

  /** One loop that is never entered twice: a reader that writes only adds to it. */
  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      while (this.#wakeups.length > 0) {
        const callbacks = this.#wakeups;
        this.#wakeups = [];
        for (const callback of callbacks) callback();
      }
    } finally {
      this.#delivering = false;
    }
  }

  async #watchKinds(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    this.#refuse(options.signal);
    for (const kind of kinds) checkKind(kind);
    checkWatchOptions(options);
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
        for (const collection of collections) await this.#reachTail(collection, options.tailEvents);
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
    this.#kindWatchers++;
    this.#armIdle();
    return watcher;
  }

  /** Makes the log of a kind reach back to a revision. InvalidBookmark when that is not possible. */
  async #reach(collection: Collection, revision: number): Promise<void> {
    if (revision > this.#revision)
      throw invalidBookmark(`the bookmark is of the future: revision ${revision}, the store is at ${this.#revision}`);
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
    for (const collection of collections) this.#release(collection);
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
      this.#deliver();
      if (this.#kindWatchers > 0) this.#armIdle();
    });
  }
}

/** Microtasks from an acknowledgement to the next write of the same caller, with some wrappers in between. */
const turnsToJoin = 16;

const noItems: readonly Resource[] = Object.freeze([]);

function makeBatch(): Batch {
  let settle = (_failure: SteadystateError | undefined): void => {};
  const settled = new Promise<SteadystateError | undefined>((resolve) => {
    settle = resolve;
  });
  return { records: [], settled, settle, submitted: false };
}

/** The failure of a batch, told to the writer of one of its resources. */
function about(failure: SteadystateError, pointer: Pointer): SteadystateError {
  return new SteadystateError(failure.code, `${pointerText(pointer)}: ${failure.message}`, { pointer, cause: failure });
}

/** The same for a write that never went out: nothing about it is in doubt. */
function refusal(failure: SteadystateError, pointer: Pointer | undefined): SteadystateError {
  if (failure.code !== 'Ambiguous') return pointer === undefined ? failure : about(failure, pointer);
  const text = `the store stopped after a failed write: ${failure.message}`;
  return new SteadystateError('Unavailable', pointer === undefined ? text : `${pointerText(pointer)}: ${text}`, {
    ...(pointer && { pointer }),
    cause: failure.cause,
  });
}

function expired({ type }: Kind, revision: number, floor: number): SteadystateError {
  return invalidBookmark(`the bookmark has expired: revision ${revision}, the history of ${type} begins after ${floor}`);
}

/** A write on its way is not called back: an abort only ends the waiting. */
function orAmbiguous<Value>(done: Promise<Value>, pointer: Pointer, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = addAbortListener(signal, () => reject(ambiguous(pointer, 'the caller stopped waiting', signal.reason)));
    done.then(resolve, reject).finally(() => abort[Symbol.dispose]());
  });
}
