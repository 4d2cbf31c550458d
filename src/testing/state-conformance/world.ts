import { strict as assert } from 'node:assert';
import type { Environment } from '../../environment/index.ts';
import type { Kind, Pointer, Resource, ResourceInput } from '../../resource/index.ts';
import { errorCode, findError } from '../../resource/index.ts';
import type {
  Bookmark,
  CallOptions,
  Capabilities,
  CoreState,
  CreateOptions,
  State,
  StateEvent,
  WatchKindOptions,
  WatchOptions,
} from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import { Reader, within } from './reader.ts';
import type { StateConformanceOptions, StoreUnderTest, Suite } from './types.ts';

/** What a case gets: a fresh store and short words for what cases do with it. */
export class World {
  core: CoreState;
  state: State;
  readonly store: StoreUnderTest;
  readonly environment: Environment;
  readonly options: StateConformanceOptions;
  readonly limitMs: number;
  readonly kind: Kind = { namespace: 'default', type: 'Things.example.dev' };
  readonly otherKind: Kind = { namespace: 'other', type: 'Others.example.dev' };
  readonly #suite: Suite;
  readonly #opened: AsyncDisposable[] = [];

  constructor(store: StoreUnderTest, suite: Suite) {
    const { options, environment } = suite;
    this.store = store;
    this.#suite = suite;
    this.options = options;
    this.environment = environment;
    this.limitMs = options.limitMs ?? 5000;
    this.core = store.core;
    this.state = wrapCore(store.core, { environment });
  }

  get capabilities(): Capabilities {
    return this.options.capabilities;
  }

  pointer<Spec = unknown>(id: string, kind: Kind = this.kind): Pointer<Spec> {
    return { ...kind, id };
  }

  thing<Spec = unknown>(
    id: string,
    spec: Spec = { size: 1 } as Spec,
    metadata: Partial<ResourceInput['metadata']> = {},
    kind: Kind = this.kind,
  ): ResourceInput<Spec> {
    return { metadata: { ...metadata, ...kind, id }, spec };
  }

  /** Creates a resource with a spec of that size. */
  create(id: string, size = 1, metadata: Partial<ResourceInput['metadata']> = {}, options?: CreateOptions): Promise<Resource> {
    return this.core.create(this.thing(id, { size }, metadata), options);
  }

  /** Sets the size of what is there. */
  async resize(id: string, size: number): Promise<Resource> {
    return this.core.update(this.thing(id, { size }, { ...(await this.editable(id)) }), {
      owner: (await this.core.get(this.pointer(id))).metadata.owner,
      expectedPhase: 'any',
    });
  }

  /** Replaces the labels of what is there. */
  async relabel(id: string, labels: Readonly<Record<string, string>>): Promise<Resource> {
    const { spec } = await this.core.get(this.pointer(id));
    return this.core.update(this.thing(id, spec, { ...(await this.editable(id)), labels }));
  }

  /** The metadata of what is there, as an author would write it back. */
  async editable(id: string): Promise<Partial<ResourceInput['metadata']>> {
    const { version, phase, finalizers, labels, annotations } = (await this.core.get(this.pointer(id))).metadata;
    return { version, phase, finalizers, labels, annotations };
  }

  async watch(id: string, options?: WatchOptions): Promise<Reader> {
    return this.#reader(new Reader(await this.core.watch(this.pointer(id), options), this.environment, this.limitMs));
  }

  async watchKind(options?: WatchKindOptions, kind: Kind = this.kind): Promise<Reader> {
    return this.#reader(new Reader(await this.core.watchKind(kind, options), this.environment, this.limitMs));
  }

  async watchBatches(options?: WatchKindOptions, kind: Kind = this.kind): Promise<Reader<readonly StateEvent[]>> {
    return this.#reader(new Reader(await this.core.watchKindAggregated(kind, options), this.environment, this.limitMs));
  }

  async watchKinds(kinds: readonly Kind[], options?: WatchKindOptions): Promise<Reader<readonly StateEvent[]>> {
    return this.#reader(new Reader(await this.core.watchKinds(kinds, options), this.environment, this.limitMs));
  }

  async watchNamespaces(type: string, options?: CallOptions): Promise<Reader<readonly StateEvent[]>> {
    assert.ok(this.core.watchNamespaces !== undefined);
    return this.#reader(new Reader(await this.core.watchNamespaces(type, options), this.environment, this.limitMs));
  }

  /** A bookmark of now. */
  async bookmark(): Promise<Bookmark> {
    await using reader = await this.watchKind({ bootstrapBookmark: true });
    const { bookmark } = await reader.next('a noop with a bookmark');
    assert.ok(bookmark !== undefined, 'bootstrapBookmark must give a bookmark');
    return bookmark;
  }

  /** Waits with the limit of a case. */
  within<Value>(promise: Promise<Value>, awaited: string): Promise<Value> {
    return within(this.environment, this.limitMs, promise, awaited);
  }

  async reopen(): Promise<void> {
    assert.ok(this.store.reopen !== undefined, 'a store with durable bookmarks must offer reopen to the suite');
    await this.close();
    this.core = await this.store.reopen();
    this.state = wrapCore(this.core, { environment: this.environment });
  }

  /** Ends the store without warning, and goes on with what it left. */
  async crash(): Promise<void> {
    assert.ok(this.store.crash !== undefined, 'a store that is said to be crashable must offer crash to the suite');
    const next = await this.store.crash();
    await this.close();
    this.core = next;
    this.state = wrapCore(next, { environment: this.environment });
  }

  /** A store beside this one. */
  async anotherStore(): Promise<CoreState> {
    const store = await this.#suite.makeStore({});
    this.#opened.push(store);
    return store.core;
  }

  /** Ends the watches that a case left open, and other stores. */
  async close(): Promise<void> {
    for (const opened of this.#opened.splice(0)) await opened[Symbol.asyncDispose]();
  }

  #reader<Made extends AsyncDisposable>(reader: Made): Made {
    this.#opened.push(reader);
    return reader;
  }
}

/** Asserts that a call rejects with this code (and reason), about this resource. */
export async function expectRejects(
  promise: Promise<unknown>,
  expected: { readonly code: string; readonly reason?: string; readonly id?: string; readonly path?: string },
): Promise<void> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  const wanted = `${expected.code}${expected.reason === undefined ? '' : ` (${expected.reason})`}`;
  if (outcome === undefined) assert.fail(`expected ${wanted}, but the call succeeded`);
  const found = findError(outcome.error);
  assert.equal(errorCode(outcome.error), expected.code, `expected ${wanted}, found ${String(outcome.error)}`);
  if (expected.reason !== undefined) assert.equal(found?.reason, expected.reason, `expected ${wanted}, found ${String(outcome.error)}`);
  if (expected.id !== undefined) assert.equal(found?.pointer?.id, expected.id, 'an error about a resource carries its pointer');
  if (expected.path !== undefined) {
    const text = `${found?.message ?? ''} ${JSON.stringify(found?.issues ?? [])}`;
    assert.ok(text.includes(expected.path), `expected an error that names ${expected.path}, found ${text}`);
  }
}

/** A rule of the contract, run on a fresh store. */
export interface Case {
  readonly name: string;
  readonly needs?: readonly (keyof Capabilities)[];
  readonly historySize?: number;
  readonly pendingLimit?: number;
  run(world: World): Promise<void>;
}
