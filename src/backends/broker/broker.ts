import type { Environment } from '../../environment/index.ts';
import type { Kind, Metadata, NamespaceSpec, Pointer, Resource, ResourceInput, SteadystateError, TypedKind } from '../../resource/index.ts';
import {
  assembleMetadata,
  assembleResource,
  checkKind,
  checkPointer,
  compileQuery,
  errorCode,
  invalid,
  makeResource,
} from '../../resource/index.ts';
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
  closed,
  createAggregatedWatch,
  createWatch,
  incarnationConflict,
  notFound,
  ownerConflict,
  pendingFinalizers,
  phaseConflict,
  versionConflict,
} from '../../state/index.ts';
import type { Collection, EncodedResource, Entry, StagedWrite } from './collection.ts';
import { Commit } from './commit.ts';
import { CommitQueue, refusal } from './commit-queue.ts';
import type { Committer } from './committer.ts';
import { finalizerNotesOf, noteFinalizers } from './finalizer-notes.ts';
import { Kinds } from './kinds.ts';
import { RevisionWaiters } from './revision-waiters.ts';
import { Watchers } from './watchers.ts';

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

  /** Puts in a resource that was read from disk, before the first call. `false` when it is there already. */
  load(kind: Kind, id: string, encoded: EncodedResource): boolean {
    return this.#kinds.claim(kind).load(id, encoded);
  }

  get<Spec>(pointer: Pointer<Spec>, options?: ReadOptions): Promise<Resource<Spec>> {
    try {
      if (options?.signal?.aborted || this.#failure) this.#refuse(options?.signal);
      const value = this.#kinds.find(pointer)?.entries.get(pointer.id)?.value;
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
    const all = (this.#kinds.find(kind)?.list() ?? noItems) as readonly Resource<Spec>[];
    const items = query === undefined ? all : Object.freeze(all.filter((resource) => query(resource.metadata)));
    return Object.freeze({ items, revision: this.#revision });
  }

  async create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: CreateOptions = {}): Promise<Resource<Spec>> {
    this.#refuseUnlessLive(options.signal);
    if (this.#queue?.crowded) await this.#turn(this.#queue, options.signal);
    const resource = makeResource(input);
    const { metadata } = resource;
    const owner = options.owner ?? '';
    if (metadata.owner !== '' && metadata.owner !== owner) throw ownerConflict(metadata, owner, metadata.owner);
    const collection = this.#kinds.claim(metadata);
    const entry = collection.claim(metadata.id);
    const { staged } = entry;
    if (staged !== undefined ? staged.value !== undefined : entry.present) return this.#lose(staged, alreadyExists(metadata));
    return this.#write(collection, entry, undefined, resource, owner, options.signal, options.actor) as Promise<Resource<Spec>>;
  }

  async update<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: UpdateOptions = {}): Promise<Resource<Spec>> {
    this.#refuseUnlessLive(options.signal);
    if (this.#queue?.crowded) await this.#turn(this.#queue, options.signal);
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
    return this.#write(collection, entry, current, resource, stored.owner, options.signal, options.actor) as Promise<Resource<Spec>>;
  }

  async destroy(pointer: Pointer, options: DestroyOptions = {}): Promise<void> {
    try {
      await this.#destroy(pointer, options);
    } catch (error) {
      if (errorCode(error) !== 'NoSpace') throw error;
      // It may have failed for the sake of what it shared a batch with.
      await this.#destroy(pointer, options);
    }
  }

  async #destroy(pointer: Pointer, options: DestroyOptions): Promise<void> {
    this.#refuseUnlessLive(options.signal);
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

  async finalizerNotes(pointer: Pointer, options?: CallOptions): Promise<readonly FinalizerNote[]> {
    return finalizerNotesOf(await this.get(pointer, options));
  }

  async waitForRevision(revision: number, options: CallOptions = {}): Promise<void> {
    this.#refuse(options.signal);
    if (!Number.isSafeInteger(revision) || revision < 0)
      throw invalid([{ path: 'revision', message: `expected a whole number from 0, found ${revision}` }]);
    if (revision <= this.#revision) return;
    this.#refuseUnlessLive(options.signal);
    await this.#revisionWaiters.wait(revision, options.signal);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchOptions = {}): Promise<Watch<Spec>> {
    this.#refuseUnlessLive(options.signal);
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
    this.#watchers.failAll(error);
    this.#revisionWaiters.fail(error);
  }

  async #watchersOf(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    this.#refuseUnlessLive(options.signal);
    return this.#unlessFailed(await this.#watchers.ofKinds(kinds, options));
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

  /** What the next write of a resource stands on: the staged value, else the durable one. */
  #current(pointer: Pointer): { readonly collection?: Collection; readonly entry?: Entry; readonly current?: Resource } {
    const collection = this.#kinds.find(pointer);
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
  ): Promise<Resource | undefined> | Resource | undefined {
    const revision = this.#stagedRevision + 1;
    this.#stagedRevision = revision;
    const value = next === undefined ? undefined : this.#stamp(next, old?.metadata, revision, owner);
    if (value !== undefined) noteFinalizers(value, old, actor);
    if (this.#queue !== undefined) return this.#queue.stage(collection, entry, revision, old, value, signal);
    this.#apply(collection, new Commit(revision, entry.id, old, value), entry);
    this.#deliver();
    return value;
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
}

const noItems: readonly Resource[] = Object.freeze([]);
