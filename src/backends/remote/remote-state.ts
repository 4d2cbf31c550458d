import type { ServiceError } from '@grpc/grpc-js';
import type { Environment } from '../../environment/index.ts';
import type {
  DefinitionRegistry,
  Kind,
  NamespaceSpec,
  Pointer,
  Resource,
  ResourceInput,
  ResourceQuery,
  TypedKind,
} from '../../resource/index.ts';
import {
  checkKind,
  checkPointer,
  compileQuery,
  isAmbiguousError,
  isNotFoundError,
  isUnsupportedError,
  makeResource,
  SteadystateError,
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
  TeardownOptions,
  UpdateOptions,
  Watch,
  WatchKindOptions,
} from '../../state/index.ts';
import {
  checkRevision,
  checkWatchOptions,
  checkWriteOptions,
  closed,
  createAggregatedWatch,
  createWatch,
  ownerConflict,
  unsupported,
  versionConflict,
} from '../../state/index.ts';
import type { InfoResponse, ResourceAnswer, WatchResponse, WireWatchOptions } from '../../wire/index.ts';
import { controlService, decodeEvent, queryToWire, ResourceCodec, revisionKey, stateService } from '../../wire/index.ts';
import { Calls, defaultDeadlineMs } from './calls.ts';
import { ControlClient } from './control-client.ts';
import { openEachKind } from './merged-source.ts';
import { RemoteSource } from './remote-source.ts';
import { watchOptions, withoutFirst } from './watch-options.ts';

export interface RemoteStateOptions {
  /** `unix:/abs/path` or `host:port`. */
  readonly address: string;
  readonly environment: Environment;
  /** Definitions whose protobuf forms are to be used. */
  readonly registry?: DefinitionRegistry;
}

/** A store behind a server of ours or of COSI's, and the control service where there is one. */
export interface RemoteState extends CoreState, AsyncDisposable {
  /** `undefined`: the server is not one of ours. */
  readonly control: ControlClient | undefined;
}

const noCapabilities: Capabilities = {
  globalRevision: false,
  incarnations: false,
  multiKindWatch: false,
  tailEvents: true,
  durableBookmarks: false,
};

/** Connects to a server. Rejects with Unavailable when nobody answers. */
export async function openRemoteState(options: RemoteStateOptions): Promise<RemoteState> {
  const calls = new Calls(options.address);
  const tracked = options.environment.open.track('connection');
  const close = (): void => {
    calls.close();
    tracked[Symbol.dispose]();
  };
  try {
    const info = await readInfo(calls);
    return new RemoteCore(calls, options, info, close);
  } catch (error) {
    close();
    throw error;
  }
}

async function readInfo(calls: Calls): Promise<InfoResponse | undefined> {
  try {
    return await calls.unary(controlService.info, {}, { call: 'control', deadlineMs: defaultDeadlineMs });
  } catch (error) {
    // A server that does not know our service speaks the eight calls.
    if (isUnsupportedError(error)) return undefined;
    throw error;
  }
}

class RemoteCore implements RemoteState {
  readonly capabilities: Capabilities;
  readonly control: ControlClient | undefined;
  // Absent: the server is not one of ours, and the protocol cannot say it.
  readonly watchNamespaces?: NonNullable<CoreState['watchNamespaces']>;
  readonly waitForRevision?: NonNullable<CoreState['waitForRevision']>;
  readonly finalizerNotes?: NonNullable<CoreState['finalizerNotes']>;
  readonly #calls: Calls;
  readonly #environment: Environment;
  readonly #codec: ResourceCodec;
  readonly #close: () => void;
  /** The teardown calls are known to be missing on this connection. */
  #noTeardown = false;
  #closed = false;
  /** Watches that stand, or are being established: they end with the connection. */
  readonly #sources = new Set<RemoteSource>();

  constructor(calls: Calls, options: RemoteStateOptions, info: InfoResponse | undefined, close: () => void) {
    this.#calls = calls;
    this.#environment = options.environment;
    this.#codec = new ResourceCodec(options.registry);
    this.#close = close;
    this.control = info && new ControlClient(calls, info, this.#codec);
    if (info !== undefined) {
      this.watchNamespaces = (type, given) => this.#watchNamespaces(type, given);
      this.waitForRevision = (revision, given) => this.#waitForRevision(revision, given);
      this.finalizerNotes = (pointer, given) => this.#finalizerNotes(pointer, given);
    }
    this.capabilities =
      info === undefined
        ? noCapabilities
        : (Object.fromEntries(
            Object.keys(noCapabilities).map((name) => [name, info.capabilities.includes(name)]),
          ) as unknown as Capabilities);
  }

  async get<Spec>(pointer: Pointer<Spec>, options: ReadOptions = {}): Promise<Resource<Spec>> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    return this.#answer(
      await this.#calls.unary(stateService.get, bare(pointer), {
        call: 'get',
        pointer: bare(pointer),
        signal: options.signal,
        span: options.span,
        deadlineMs: defaultDeadlineMs,
      }),
      options.raw,
    );
  }

  async list<Spec>(kind: TypedKind<Spec>, options: ListOptions = {}): Promise<ResourceList<Spec>> {
    this.#refuse(options.signal);
    checkKind(kind);
    this.#checkQuery(options);
    const { namespace, type } = kind;
    const stream = this.#calls.stream(stateService.list, { namespace, type, options: queryToWire(options) }, options.span);
    const items: Resource<Spec>[] = [];
    let revision: number | undefined;
    stream.on('status', ({ metadata }) => {
      const [text] = metadata.get(revisionKey);
      if (text !== undefined) revision = Number(text);
    });
    const stop = (): void => stream.cancel();
    options.signal?.addEventListener('abort', stop, { once: true });
    try {
      for await (const answer of stream) items.push(this.#answer(answer as ResourceAnswer, options.raw));
    } catch (error) {
      options.signal?.throwIfAborted();
      throw isServiceError(error) ? this.#calls.error(error, { call: 'list' }) : error;
    } finally {
      options.signal?.removeEventListener('abort', stop);
    }
    return Object.freeze({ items: Object.freeze(items), ...(revision !== undefined && { revision }) });
  }

  async create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: CreateOptions = {}): Promise<Resource<Spec>> {
    this.#refuse(options.signal);
    const resource = makeResource(input);
    checkWriteOptions(options);
    const { owner = '' } = options;
    this.#checkOwner(resource, owner);
    const request = { resource: this.#codec.toWire(resource), options: { owner } };
    return this.#answer(
      await this.#calls.unary(stateService.create, request, {
        call: 'create',
        pointer: bare(resource.metadata),
        signal: options.signal,
        span: options.span,
        actor: options.actor,
        deadlineMs: defaultDeadlineMs,
      }),
    );
  }

  async update<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: UpdateOptions = {}): Promise<Resource<Spec>> {
    this.#refuse(options.signal);
    const resource = makeResource(input);
    checkWriteOptions(options);
    const wire = this.#codec.toWire(resource);
    const version = options.currentVersion ?? resource.metadata.version;
    if (version !== 'undefined' && !/^[0-9]{1,20}$/.test(version)) throw versionConflict(resource.metadata, version, 'a number');
    const { expectedPhase = 'running', owner = '' } = options;
    this.#checkOwner(resource, owner);
    const metadata = { ...(wire.metadata as NonNullable<typeof wire.metadata>), version };
    const request = {
      // A server of others stores the owner that the metadata names: it must be the one that may write.
      newResource: { ...wire, metadata: this.control === undefined && metadata.owner === '' ? { ...metadata, owner } : metadata },
      options: { owner, ...(expectedPhase !== 'any' && { expectedPhase }) },
    };
    return this.#answer(
      await this.#calls.unary(stateService.update, request, {
        call: 'update',
        pointer: bare(resource.metadata),
        signal: options.signal,
        span: options.span,
        actor: options.actor,
        deadlineMs: defaultDeadlineMs,
      }),
    );
  }

  async destroy(pointer: Pointer, options: DestroyOptions = {}): Promise<void> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    checkWriteOptions(options);
    const context = {
      call: 'destroy' as const,
      pointer: bare(pointer),
      signal: options.signal,
      span: options.span,
      deadlineMs: defaultDeadlineMs,
    };
    const owner = options.owner ?? '';
    if (options.uid === undefined) await this.#calls.unary(stateService.destroy, { ...bare(pointer), options: { owner } }, context);
    else if (this.control !== undefined)
      await this.#calls.unary(controlService.destroyIncarnation, { ...bare(pointer), owner, uid: options.uid }, context);
    else throw noIncarnations('destroy', pointer);
  }

  async teardown(pointer: Pointer, options: TeardownOptions = {}): Promise<boolean> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    checkWriteOptions(options);
    if (options.uid !== undefined && this.control === undefined) throw noIncarnations('tear down', pointer);
    if (!this.#noTeardown) {
      try {
        const request = {
          ...bare(pointer),
          options: { owner: options.owner ?? '', ...(options.uid !== undefined && { uid: options.uid }) },
        };
        return (
          await this.#calls.unary(stateService.teardown, request, {
            call: 'teardown',
            pointer: bare(pointer),
            signal: options.signal,
            span: options.span,
            deadlineMs: defaultDeadlineMs,
          })
        ).destroyReady;
      } catch (error) {
        if (this.control === undefined && isAmbiguousError(error)) return this.#readTeardown(pointer, options, error);
        if (!isUnsupportedError(error)) throw error;
        this.#noTeardown = true;
      }
    }
    return this.#teardownByUpdate(pointer, options);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    const { namespace, type, id } = pointer;
    const source = await this.#source(options, 'initial', (wire) =>
      this.#calls.stream(stateService.watch, { namespace, type, id, options: wire, apiVersion: 1 }, options.span),
    );
    return createWatch<Spec>(options.tailEvents === 0 ? withoutFirst(source) : source, {
      environment: this.#environment,
      signal: options.signal,
    });
  }

  async watchKind<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    return createWatch<Spec>(await this.#kindSource(kind, options), { environment: this.#environment, signal: options.signal });
  }

  async watchKindAggregated<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<AggregatedWatch<Spec>> {
    return createAggregatedWatch<Spec>(await this.#kindSource(kind, options), { environment: this.#environment, signal: options.signal });
  }

  async watchKinds(kinds: readonly Kind[], options: WatchKindOptions = {}): Promise<AggregatedWatch> {
    this.#refuse(options.signal);
    for (const kind of kinds) checkKind(kind);
    checkWatchOptions(options);
    const source = this.control === undefined ? await this.#eachKind(kinds, options) : await this.#severalKinds(kinds, options);
    return createAggregatedWatch(source, { environment: this.#environment, signal: options.signal });
  }

  #severalKinds(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    const kind = kinds.map(({ namespace, type }) => ({ namespace, type }));
    return this.#source(options, 'asked', (wire) => this.#calls.stream(controlService.watchKinds, { kind, options: wire }, options.span));
  }

  /** One stream per kind, for a server that has no order over kinds. */
  #eachKind(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    if (options.startFromBookmark !== undefined || options.tailEvents !== undefined || options.bootstrapBookmark === true)
      throw unsupported('this server has no order over several kinds, so no bookmark and no tail of them; watch each kind');
    return openEachKind(kinds, options.bootstrapContents === true, (kind) => this.#kindSource(kind, options));
  }

  async #watchNamespaces(type: string, options: CallOptions = {}): Promise<AggregatedWatch<NamespaceSpec>> {
    this.#refuse(options.signal);
    checkKind({ namespace: 'any', type });
    const source = await this.#source(options, 'none', () => this.#calls.stream(controlService.watchNamespaces, { type }, options.span));
    return createAggregatedWatch(source, { environment: this.#environment, signal: options.signal });
  }

  async #waitForRevision(revision: number, options: CallOptions = {}): Promise<void> {
    this.#refuse(options.signal);
    checkRevision(revision);
    await this.#calls.unary(controlService.waitForRevision, { revision }, { call: 'get', signal: options.signal, span: options.span });
  }

  async #finalizerNotes(pointer: Pointer, options: CallOptions = {}): Promise<readonly FinalizerNote[]> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    const context = {
      call: 'get' as const,
      pointer: bare(pointer),
      signal: options.signal,
      span: options.span,
      deadlineMs: defaultDeadlineMs,
    };
    return (await this.#calls.unary(controlService.finalizers, bare(pointer), context)).note;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const source of [...this.#sources]) source.close(closed('the connection was closed'));
    this.#close();
  }

  async #kindSource(kind: Kind, options: WatchKindOptions): Promise<EventSource> {
    this.#refuse(options.signal);
    checkKind(kind);
    const { namespace, type } = kind;
    return this.#source(options, 'asked', (wire) =>
      this.#calls.stream(stateService.watch, { namespace, type, options: wire, apiVersion: 1 }, options.span),
    );
  }

  async #source(
    options: WatchKindOptions,
    place: FirstPlace,
    open: (wire: WireWatchOptions) => ReturnType<Calls['stream']>,
  ): Promise<EventSource> {
    checkWatchOptions(options);
    this.#checkQuery(options);
    // A bookmark at the start makes every watch of a kind resumable from its first moment.
    const known = options.bootstrapBookmark === true || options.startFromBookmark !== undefined || options.bootstrapContents === true;
    const ask = place === 'asked' && !known;
    const comes = ask || (place === 'initial' && !known && options.tailEvents === undefined);
    const base = watchOptions(options);
    const source: RemoteSource = new RemoteSource({
      environment: this.#environment,
      hideFirstNoop: ask,
      // A server of ours gives it at once.
      awaitBookmark: this.control !== undefined && comes,
      from: options.startFromBookmark,
      repeatable: options.bootstrapContents === true,
      tellsCaughtUp: place === 'asked' && this.control !== undefined,
      onEnd: () => this.#sources.delete(source),
      open: (bookmark) => {
        const wire: WireWatchOptions =
          bookmark === undefined
            ? { ...base, bootstrapBookmark: base.bootstrapBookmark || ask }
            : {
                ...base,
                bootstrapContents: false,
                bootstrapBookmark: false,
                tailEvents: 0,
                startFromBookmark: bookmark.toUint8Array(),
                caughtUp: place === 'asked',
              };
        return open(wire) as never;
      },
      decode: (response: WatchResponse) =>
        response.event.map((event) => decodeEvent(event, this.#codec, options.raw)).filter((event) => event !== undefined),
      readError: (error: ServiceError) => this.#calls.error(error, { call: 'watch' }),
    });
    this.#sources.add(source);
    await source.start(options.signal);
    return source;
  }

  /** Servers of others check less of what they are asked; some end over it. */
  #checkQuery(query: ResourceQuery): void {
    if (this.control === undefined) compileQuery(query);
  }

  #checkOwner(resource: Resource, owner: string): void {
    if (this.control === undefined && resource.metadata.owner !== '' && resource.metadata.owner !== owner)
      throw ownerConflict(resource.metadata, owner, resource.metadata.owner);
  }

  /**
   * The outcome of a teardown that a server of COSI did not tell. It answers UNKNOWN also to the loser of two that race, so
   * what it keeps decides: a resource in teardown never leaves it, so whoever finds it there has what was asked for.
   */
  async #readTeardown(pointer: Pointer, options: TeardownOptions, unclear: unknown): Promise<boolean> {
    if (options.signal?.aborted) throw unclear;
    const { metadata } = await this.get(pointer, options.signal === undefined ? {} : { signal: options.signal }).catch((error: unknown) => {
      throw isNotFoundError(error) ? error : unclear;
    });
    if (metadata.phase !== 'tearingDown') throw unclear;
    return metadata.finalizers.length === 0;
  }

  /** How Go's runtime tears down, for servers without the call. */
  async #teardownByUpdate(pointer: Pointer, options: TeardownOptions): Promise<boolean> {
    for (;;) {
      const current = await this.get(pointer, options.signal === undefined ? {} : { signal: options.signal });
      const { metadata, spec } = current;
      if (metadata.phase === 'tearingDown') return metadata.finalizers.length === 0;
      try {
        const written = await this.update({ metadata: { ...metadata, phase: 'tearingDown' }, spec }, options);
        return written.metadata.finalizers.length === 0;
      } catch (error) {
        const reason = error instanceof SteadystateError ? error.reason : undefined;
        if (reason !== 'version' && reason !== 'phase') throw error;
      }
    }
  }

  #answer<Spec>({ resource }: ResourceAnswer, raw?: boolean): Resource<Spec> {
    return this.#codec.read(resource, raw) as Resource<Spec>;
  }

  #refuse(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#closed) throw closed('the connection was closed');
  }
}

/** Whether a watch has a place to go on from at its start: the bookmark that is asked for, that of the present value, or none. */
type FirstPlace = 'asked' | 'initial' | 'none';

function noIncarnations(what: string, pointer: Pointer): SteadystateError {
  return unsupported(`this server cannot ${what} one incarnation only: it does not tell incarnations apart`, { pointer: bare(pointer) });
}

function bare({ namespace, type, id }: Pointer): Pointer {
  return { namespace, type, id };
}

function isServiceError(error: unknown): error is ServiceError {
  return typeof error === 'object' && error !== null && typeof (error as ServiceError).code === 'number' && 'metadata' in error;
}
