import type { Environment } from '../../environment/index.ts';
import type { Kind, Metadata, NamespaceSpec, Pointer, Resource, ResourceInput, SteadystateError, TypedKind } from '../../resource/index.ts';
import { assembleMetadata, assembleResource, checkKind, checkPointer, errorCode, makeResource, planQuery } from '../../resource/index.ts';
import type {
  AggregatedWatch,
  CallOptions,
  Capabilities,
  CoreState,
  CreateOptions,
  DestroyOptions,
  EventSource,
  FinalizerNote,
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
  checkRevision,
  checkWriteOptions,
  closed,
  createAggregatedWatch,
  createWatch,
  notFound,
  ownerConflict,
} from '../../state/index.ts';
import type { Collection, EncodedResource, Entry } from './collection.ts';
import { Commit } from './commit.ts';
import { CommitQueue } from './commit-queue.ts';
import type { Committer } from './committer.ts';
import { finalizerNotesOf, noteFinalizers } from './finalizer-notes.ts';
import { Kinds } from './kinds.ts';
import type { EarlyFind } from './loading.ts';
import { Loading } from './loading.ts';
import { orAborted } from './or-aborted.ts';
import { RevisionWaiters } from './revision-waiters.ts';
import { Watchers } from './watchers.ts';
import { currentOf, destroyConflict, lose, updateConflict } from './write-checks.ts';

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

/**
 * The core that the memory and the SQLite backend share: collections, one revision over all kinds, checks, and delivery.
 * Reads and checks are synchronous on shared frozen values. With a committer, writes are checked against what is
 * staged, and readers see what is durable.
 */
export class Broker implements CoreState, AsyncDisposable {
  readonly capabilities: Capabilities;
  readonly storeId: string;
  readonly #environment: Environment;
  readonly #historySize: number;
  readonly #kinds: Kinds;
  readonly #watchers: Watchers;
  readonly #revisionWaiters = new RevisionWaiters();
  /** Absent: a write is done at once. */
  readonly #queue: CommitQueue | undefined;
  /** The newest revision that readers see. */
  #revision: number;
  /** The newest revision that was given to a write. */
  #stagedRevision: number;
  /** Refuses every call. */
  #failure: SteadystateError | undefined;
  /** Refuses writes and watches: a write failed, and what is in memory is still what was durable before it. */
  #stopped: SteadystateError | undefined;
  /** There while resources are still being put in. */
  #loading: Loading | undefined;
  #writesSinceBreath = 0;

  constructor(options: BrokerOptions) {
    const { environment, storeId, committer } = options;
    this.capabilities = options.capabilities;
    this.storeId = storeId;
    this.#environment = environment;
    this.#historySize = options.historySize ?? 4096;
    this.#revision = options.revision ?? 0;
    this.#stagedRevision = this.#revision;
    this.#kinds = new Kinds(this.#revision);
    this.#watchers = new Watchers({
      environment,
      storeId,
      committer,
      kinds: this.#kinds,
      pendingLimit: options.pendingLimit ?? 1_000_000,
      idleBookmarkMs: options.idleBookmarkMs ?? 10_000,
      revision: () => this.#revision,
    });
    this.#queue =
      committer &&
      new CommitQueue(committer, {
        kinds: this.#kinds,
        apply: (collection, commit) => this.#apply(collection, commit),
        deliver: () => this.#deliver(),
        rolledBack: () => {
          this.#stagedRevision = this.#revision;
        },
        poison: (error) => this.poison(error),
      });
  }

  /** The newest revision that readers see. */
  get revision(): number {
    return this.#revision;
  }

  /** From now until `endLoading` a get of what is not there yet asks `find`, and everything else waits. */
  beginLoading(find: EarlyFind): void {
    this.#loading = new Loading(find);
  }

  /** All resources are in, or with an error: never will be, and no call is answered any more. */
  endLoading(error?: SteadystateError): void {
    const loading = this.#loading;
    this.#loading = undefined;
    if (error !== undefined) this.#failure ??= error;
    loading?.end();
  }

  /** Puts in a resource that was read from disk, before `endLoading`. `false` when it is there already. */
  load(kind: Kind, id: string, encoded: EncodedResource): boolean {
    return this.#kinds.claim(kind).load(id, encoded);
  }

  get<Spec>(pointer: Pointer<Spec>, options?: ReadOptions): Promise<Resource<Spec>> {
    try {
      if (options?.signal?.aborted || this.#failure) this.#refuse(options?.signal);
      const value = this.#kinds.find(pointer)?.entries.get(pointer.id)?.value;
      if (value !== undefined) return Promise.resolve(value as Resource<Spec>);
      checkPointer(pointer);
      if (this.#loading !== undefined) return this.#getEarly(this.#loading, pointer, options);
      return Promise.reject(notFound(pointer));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async list<Spec>(kind: TypedKind<Spec>, options: ListOptions = {}): Promise<ResourceList<Spec>> {
    if (options.signal?.aborted || this.#failure) this.#refuse(options.signal);
    checkKind(kind);
    const plan = planQuery(options);
    if (this.#loading !== undefined) await this.#loaded(this.#loading, options.signal);
    const collection = this.#kinds.find(kind);
    const items = ((plan === undefined ? collection?.list() : collection?.select(plan)) ?? noItems) as readonly Resource<Spec>[];
    return Object.freeze({ items, revision: this.#revision });
  }

  create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options?: CreateOptions): Promise<Resource<Spec>> {
    try {
      this.#refuseUnlessLive(options?.signal);
      if (this.#loading !== undefined) {
        const resource = makeResource(input);
        return this.#loaded(this.#loading, options?.signal).then(() => this.create(resource, options));
      }
      const queue = this.#queue;
      if (queue?.crowded) return this.#turn(queue, options?.signal).then(() => this.#create(input, options));
      return this.#create(input, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  update<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options?: UpdateOptions): Promise<Resource<Spec>> {
    try {
      this.#refuseUnlessLive(options?.signal);
      if (this.#loading !== undefined) {
        const resource = makeResource(input);
        return this.#loaded(this.#loading, options?.signal).then(() => this.update(resource, options));
      }
      const queue = this.#queue;
      if (queue?.crowded) return this.#turn(queue, options?.signal).then(() => this.#update(input, options));
      return this.#update(input, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  destroy(pointer: Pointer, options?: DestroyOptions): Promise<void> {
    try {
      if (this.#loading !== undefined && this.#failure === undefined) {
        const { namespace, type, id } = pointer;
        return this.#loaded(this.#loading, options?.signal).then(() => this.destroy({ namespace, type, id }, options));
      }
      const done = this.#destroy(pointer, options);
      if (this.#queue === undefined) return done;
      return done.catch((error: unknown) => {
        if (errorCode(error) !== 'NoSpace') throw error;
        // It may have failed for the sake of what it shared a batch with.
        return this.#destroy(pointer, options);
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async finalizerNotes(pointer: Pointer, options?: CallOptions): Promise<readonly FinalizerNote[]> {
    return finalizerNotesOf(await this.get(pointer, options));
  }

  async waitForRevision(revision: number, options: CallOptions = {}): Promise<void> {
    this.#refuse(options.signal);
    checkRevision(revision);
    if (this.#loading !== undefined) await this.#loaded(this.#loading, options.signal);
    if (revision <= this.#revision) return;
    this.#refuseUnlessLive(options.signal);
    await this.#revisionWaiters.wait(revision, options.signal);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchOptions = {}): Promise<Watch<Spec>> {
    this.#refuseUnlessLive(options.signal);
    if (this.#loading !== undefined) await this.#loaded(this.#loading, options.signal);
    return createWatch<Spec>(this.#unlessFailed(await this.#watchers.ofPointer(pointer, options)), {
      environment: this.#environment,
      signal: options.signal,
    });
  }

  async watchKind<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    return createWatch<Spec>(await this.#watchersOf([kind], options), { environment: this.#environment, signal: options.signal });
  }

  async watchKindAggregated<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<AggregatedWatch<Spec>> {
    return createAggregatedWatch<Spec>(await this.#watchersOf([kind], options), { environment: this.#environment, signal: options.signal });
  }

  async watchKinds(kinds: readonly Kind[], options: WatchKindOptions = {}): Promise<AggregatedWatch> {
    return createAggregatedWatch(await this.#watchersOf(kinds, options), { environment: this.#environment, signal: options.signal });
  }

  async watchNamespaces(type: string, options: CallOptions = {}): Promise<AggregatedWatch<NamespaceSpec>> {
    this.#refuse(options.signal);
    if (this.#loading !== undefined) await this.#loaded(this.#loading, options.signal);
    return createAggregatedWatch(this.#unlessFailed(this.#watchers.ofNamespaces(type)), {
      environment: this.#environment,
      signal: options.signal,
    });
  }

  /** Bookmarks from before a revision are expired from now on: its events were dropped. Watches that stand go on. */
  forgetUpTo(revision: number): void {
    this.#watchers.forgetUpTo(revision);
  }

  /** Ends all watches and refuses further calls. Writes that are on their way settle first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#failure ??= this.#stopped ?? closed('the store was closed');
    await this.#queue?.drained();
    this.#watchers.closeAll();
    this.#revisionWaiters.fail(this.#failure);
  }

  /**
   * After a failure that leaves the outcome on disk unknown: nothing is acknowledged any more, and every watch ends with the
   * error. Reading goes on from memory, unless the file itself is not what it was.
   */
  poison(error: SteadystateError): void {
    if (this.#stopped !== undefined || this.#failure !== undefined) return;
    this.#stopped = error;
    if (error.code === 'Corrupt') this.#failure = error;
    this.#environment.log.log('error', 'the store takes no more writes', { code: error.code, error: error.message });
    this.#watchers.failAll(error);
    this.#revisionWaiters.fail(error);
  }

  async #watchersOf(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    this.#refuseUnlessLive(options.signal);
    if (this.#loading !== undefined) await this.#loaded(this.#loading, options.signal);
    return this.#unlessFailed(await this.#watchers.ofKinds(kinds, options));
  }

  /** Waits for all resources; throws when they cannot be had, or the caller has given up. */
  async #loaded(loading: Loading, signal: AbortSignal | undefined): Promise<void> {
    await loading.wait(signal);
    this.#refuse(signal);
  }

  /** A resource that is found is there, whatever else is; that one is not there only the whole can tell. */
  async #getEarly<Spec>(
    loading: Loading,
    { namespace, type, id }: Pointer<Spec>,
    options: ReadOptions | undefined,
  ): Promise<Resource<Spec>> {
    const found = await orAborted(loading.find({ namespace, type, id }), options?.signal);
    if (found !== undefined && this.#failure === undefined) return found as Resource<Spec>;
    await this.#loaded(loading, options?.signal);
    return this.get({ namespace, type, id }, options);
  }

  /** The store may have failed or been closed while a watch was established: nobody would tell that one any more. */
  #unlessFailed(source: EventSource): EventSource {
    const failure = this.#failure ?? this.#stopped;
    if (failure === undefined) return source;
    source.close();
    throw failure;
  }

  #refuse(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** For writes and watches. */
  #refuseUnlessLive(signal: AbortSignal | undefined): void {
    this.#refuse(signal);
    if (this.#stopped !== undefined) throw this.#stopped;
  }

  #create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: CreateOptions | undefined): Promise<Resource<Spec>> {
    const resource = makeResource(input);
    const { metadata } = resource;
    if (options !== undefined) checkWriteOptions(options);
    const owner = options?.owner ?? '';
    if (metadata.owner !== '' && metadata.owner !== owner) throw ownerConflict(metadata, owner, metadata.owner);
    const collection = this.#kinds.claim(metadata);
    const entry = collection.claim(metadata.id);
    const { staged } = entry;
    if (staged !== undefined ? staged.value !== undefined : entry.present) return lose(staged, alreadyExists(metadata));
    return this.#write(collection, entry, undefined, resource, owner, options?.signal, options?.actor) as Promise<Resource<Spec>>;
  }

  #update<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: UpdateOptions | undefined): Promise<Resource<Spec>> {
    const resource = makeResource(input);
    const { metadata } = resource;
    if (options !== undefined) checkWriteOptions(options);
    const collection = this.#kinds.find(metadata);
    const entry = collection?.entries.get(metadata.id);
    const current = entry && currentOf(entry);
    if (collection === undefined || entry === undefined || current === undefined) return lose(entry?.staged, notFound(metadata));
    const stored = current.metadata;
    const conflict = updateConflict(metadata, stored, options);
    if (conflict !== undefined) return lose(entry.staged, conflict);
    return this.#write(collection, entry, current, resource, stored.owner, options?.signal, options?.actor) as Promise<Resource<Spec>>;
  }

  #destroy(pointer: Pointer, options: DestroyOptions | undefined): Promise<void> {
    this.#refuseUnlessLive(options?.signal);
    if (options !== undefined) checkWriteOptions(options);
    const collection = this.#kinds.find(pointer);
    const entry = collection?.entries.get(pointer.id);
    const current = entry && currentOf(entry);
    if (collection === undefined || entry === undefined || current === undefined) {
      checkPointer(pointer);
      return lose(entry?.staged, notFound(pointer));
    }
    const stored = current.metadata;
    const conflict = destroyConflict(pointer, stored, options);
    if (conflict !== undefined) return lose(entry.staged, conflict);
    return this.#write(collection, entry, current, undefined, stored.owner, options?.signal) as Promise<undefined>;
  }

  /** On a full disk: waits until nothing else is on its way. */
  async #turn(queue: CommitQueue, signal: AbortSignal | undefined): Promise<void> {
    while (queue.crowded) await queue.drained();
    this.#refuseUnlessLive(signal);
  }

  #write(
    collection: Collection,
    entry: Entry,
    old: Resource | undefined,
    next: Resource | undefined,
    owner: string,
    signal: AbortSignal | undefined,
    actor = '',
  ): Promise<Resource | undefined> {
    const revision = this.#stagedRevision + 1;
    this.#stagedRevision = revision;
    const value = next === undefined ? undefined : this.#stamp(collection.kind, entry.id, next, old?.metadata, revision, owner);
    if (value !== undefined) noteFinalizers(value, old, actor);
    if (this.#queue !== undefined) return this.#queue.stage(collection, entry, revision, old, value, signal);
    this.#apply(collection, new Commit(revision, entry.id, old, value), entry);
    this.#deliver();
    if (++this.#writesSinceBreath < writesPerBreath) return Promise.resolve(value);
    this.#writesSinceBreath = 0;
    return this.#environment.breathe().then(() => value);
  }

  /** With the texts of kind and id that the store has already: what came from elsewhere brings its own. */
  #stamp(kind: Kind, id: string, resource: Resource, old: Metadata | undefined, revision: number, owner: string): Resource {
    const { namespace, type } = kind;
    const { phase, finalizers, labels, annotations } = resource.metadata;
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

  /** Tells those who wait for what was applied. */
  #deliver(): void {
    this.#watchers.deliver();
    this.#revisionWaiters.reached(this.#revision);
  }

  #apply(collection: Collection, commit: Commit, entry?: Entry): void {
    this.#revision = commit.revision;
    const before = collection.size;
    collection.apply(commit, entry);
    if ((before === 0) !== (collection.size === 0)) this.#watchers.namespaceChanged(collection.kind);
    const { log } = collection;
    if (log.size >= this.#historySize * 2) {
      const place = log.end - this.#historySize;
      for (const watcher of collection.kindWatchers) watcher.beforeDrop(collection, place);
      collection.folds?.append(log, place);
      log.drop(place - log.start);
    }
    const pointerWatchers = collection.pointerWatchers.get(commit.id);
    if (pointerWatchers !== undefined) for (const watcher of pointerWatchers) watcher.push(commit);
    for (const watcher of collection.waiting) if (watcher.concerns(commit)) watcher.wakeReader();
  }
}

const noItems: readonly Resource[] = Object.freeze([]);

/** In memory a write is done at once: who writes without a pause would keep timers, input and readers waiting. */
const writesPerBreath = 256;
