import type { Environment } from '../../environment/index.ts';
import type { DefinitionRegistry, Kind, NamespaceSpec, Pointer, Resource, ResourceInput, TypedKind } from '../../resource/index.ts';
import {
  checkKind,
  checkPointer,
  invalid,
  isAmbiguousError,
  isUnsupportedError,
  makeResource,
  type SteadystateError,
} from '../../resource/index.ts';
import type {
  AggregatedWatch,
  CallOptions,
  Capabilities,
  CoreState,
  CreateOptions,
  DestroyOptions,
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
  ambiguous,
  checkRevision,
  checkWriteOptions,
  closed,
  createAggregatedWatch,
  createWatch,
  ownerConflict,
  unsupported,
  versionConflict,
} from '../../state/index.ts';
import type { InfoResponse, ResourceAnswer } from '../../wire/index.ts';
import { controlService, queryToWire, ResourceCodec, revisionKey, stateService } from '../../wire/index.ts';
import { Calls, defaultDeadlineMs } from './calls.ts';
import { ControlClient } from './control-client.ts';
import { readTeardown, teardownByUpdate } from './teardown.ts';
import { withoutFirst } from './watch-options.ts';
import { checkQuery, WatchSources } from './watch-sources.ts';

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

/** Longest path at which a socket can be reached, bytes; Node cuts a longer one, and would reach another socket. */
const maximumSocketPath = 107;

/** Connects to a server. Rejects with Unavailable when nobody answers, with Invalid for a path that no socket can have. */
export async function openRemoteState(options: RemoteStateOptions): Promise<RemoteState> {
  const path = options.address.startsWith('unix:') ? options.address.slice('unix:'.length).replace(/^\/\//, '') : '';
  const bytes = Buffer.byteLength(path);
  if (bytes > maximumSocketPath)
    throw invalid([
      { path: 'address', message: `the socket path ${path} has ${bytes} bytes, and no socket has more than ${maximumSocketPath}` },
    ]);
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
  readonly #watches: WatchSources;
  readonly #close: () => void;
  /** The teardown calls are known to be missing on this connection. */
  #noTeardown = false;
  #closed = false;

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
    this.#watches = new WatchSources({
      calls,
      environment: options.environment,
      codec: this.#codec,
      ours: info !== undefined,
      capabilities: this.capabilities,
    });
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
    checkQuery(options);
    const { namespace, type } = kind;
    const stream = this.#calls.stream(stateService.list, { namespace, type, options: queryToWire(options) }, options.span);
    const items: Resource<Spec>[] = [];
    let revision: number | undefined;
    stream.on('status', ({ metadata }) => {
      const [text] = metadata.get(revisionKey);
      if (text !== undefined) revision = Number(text);
    });
    for await (const answer of this.#calls.messages(stream, { call: 'list', signal: options.signal }))
      items.push(this.#answer(answer, options.raw));
    return Object.freeze({ items: Object.freeze(items), ...(revision !== undefined && { revision }) });
  }

  async create<Spec>(input: ResourceInput<Spec> | Resource<Spec>, options: CreateOptions = {}): Promise<Resource<Spec>> {
    this.#refuse(options.signal);
    const resource = makeResource(input);
    checkWriteOptions(options);
    const { owner = '' } = options;
    this.#checkOwner(resource, owner);
    const request = { resource: this.#codec.toWire(resource), options: { owner } };
    return this.#written(
      resource.metadata,
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
    return this.#written(
      resource.metadata,
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
        if (this.control === undefined && isAmbiguousError(error)) return readTeardown(this, pointer, options, error);
        if (!isUnsupportedError(error)) throw error;
        this.#noTeardown = true;
      }
    }
    return teardownByUpdate(this, pointer, options);
  }

  async watch<Spec>(pointer: Pointer<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    this.#refuse(options.signal);
    checkPointer(pointer);
    const source = await this.#watches.one(pointer, options);
    return createWatch<Spec>(options.tailEvents === 0 ? withoutFirst(source) : source, {
      environment: this.#environment,
      signal: options.signal,
    });
  }

  async watchKind<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<Watch<Spec>> {
    this.#refuse(options.signal);
    checkKind(kind);
    return createWatch<Spec>(await this.#watches.kind(kind, options), { environment: this.#environment, signal: options.signal });
  }

  async watchKindAggregated<Spec>(kind: TypedKind<Spec>, options: WatchKindOptions = {}): Promise<AggregatedWatch<Spec>> {
    this.#refuse(options.signal);
    checkKind(kind);
    return createAggregatedWatch<Spec>(await this.#watches.kind(kind, options), { environment: this.#environment, signal: options.signal });
  }

  async watchKinds(kinds: readonly Kind[], options: WatchKindOptions = {}): Promise<AggregatedWatch> {
    this.#refuse(options.signal);
    for (const kind of kinds) checkKind(kind);
    const source = await this.#watches.kinds(kinds, options);
    return createAggregatedWatch(source, { environment: this.#environment, signal: options.signal });
  }

  async #watchNamespaces(type: string, options: CallOptions = {}): Promise<AggregatedWatch<NamespaceSpec>> {
    this.#refuse(options.signal);
    checkKind({ namespace: 'any', type });
    const source = await this.#watches.namespaces(type, options);
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
    this.#watches.close();
    this.#close();
  }

  #checkOwner(resource: Resource, owner: string): void {
    if (this.control === undefined && resource.metadata.owner !== '' && resource.metadata.owner !== owner)
      throw ownerConflict(resource.metadata, owner, resource.metadata.owner);
  }

  #answer<Spec>({ resource }: ResourceAnswer, raw?: boolean): Resource<Spec> {
    return this.#codec.read(resource, raw) as Resource<Spec>;
  }

  /** What a write answered. That cannot be read is no word on whether it happened. */
  #written<Spec>(pointer: Pointer, answer: ResourceAnswer): Resource<Spec> {
    try {
      return this.#answer(answer);
    } catch (error) {
      throw ambiguous(bare(pointer), 'the answer of the server cannot be read', error);
    }
  }

  #refuse(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#closed) throw closed('the connection was closed');
  }
}

function noIncarnations(what: string, pointer: Pointer): SteadystateError {
  return unsupported(`this server cannot ${what} one incarnation only: it does not tell incarnations apart`, { pointer: bare(pointer) });
}

function bare({ namespace, type, id }: Pointer): Pointer {
  return { namespace, type, id };
}
