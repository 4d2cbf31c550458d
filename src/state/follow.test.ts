import { afterEach, describe, expect, test } from 'vitest';
import { memoryState } from '../backends/memory/index.ts';
import type { Resource } from '../resource/index.ts';
import { Bytes, SteadystateError } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { CoreState, EventSource, StateEvent, Watch, WatchKindOptions } from './index.ts';
import { createWatch, sourceOf, wrapCore } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const kind = { namespace: 'default', type: 'Things.example.dev' };
const thing = (id: string, size = 1) => ({ metadata: { ...kind, id }, spec: { size } });
const brief = (events: readonly StateEvent[]): string[] =>
  events.map((event) => ('resource' in event ? `${event.type} ${event.resource.metadata.id}` : event.type));

/** A store whose watches can be cut, and refused for a while. */
function shaky(core: CoreState) {
  const cuts = new Set<(error: SteadystateError) => void>();
  const opened: WatchKindOptions[] = [];
  let refusal: SteadystateError | undefined;
  const shakyCore: CoreState = {
    capabilities: core.capabilities,
    get: (pointer, call) => core.get(pointer, call),
    list: (kind, call) => core.list(kind, call),
    create: (resource, call) => core.create(resource, call),
    update: (resource, call) => core.update(resource, call),
    destroy: (pointer, call) => core.destroy(pointer, call),
    watch: (pointer, call) => core.watch(pointer, call),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, call),
    watchKinds: (kinds, call) => core.watchKinds(kinds, call),
    async watchKind(about, options = {}) {
      opened.push(options);
      if (refusal !== undefined) throw refusal;
      const inner = sourceOf((await core.watchKind(about, options)) as Watch);
      const source = new CutSource(inner);
      cuts.add(source.cut);
      return createWatch(source, { environment, signal: options.signal }) as never;
    },
  };
  return {
    state: wrapCore(shakyCore, { environment }),
    opened,
    refuse(error: SteadystateError | undefined) {
      refusal = error;
    },
    cut(error = new SteadystateError('Unavailable', 'the line was cut')) {
      for (const cut of cuts) cut(error);
      cuts.clear();
    },
  };
}

class CutSource implements EventSource {
  #error: SteadystateError | undefined;
  #callbacks: (() => void)[] = [];
  ended = false;
  readonly inner: EventSource;
  constructor(inner: EventSource) {
    this.inner = inner;
  }
  readonly cut = (error: SteadystateError): void => {
    this.#error = error;
    for (const callback of this.#callbacks.splice(0)) callback();
  };
  take(max: number): readonly StateEvent[] {
    if (this.#error === undefined || this.ended) return this.inner.take(max);
    this.close();
    return [{ type: 'errored', error: this.#error }];
  }
  whenReady(callback: () => void): void {
    if (this.#error !== undefined) return callback();
    let called = false;
    const callOnce = (): void => {
      if (called) return;
      called = true;
      callback();
    };
    this.#callbacks.push(callOnce);
    this.inner.whenReady(callOnce);
  }
  close(): void {
    this.ended = true;
    this.inner.close();
  }
}

async function following(state: ReturnType<typeof wrapCore>, options: Omit<WatchKindOptions, 'startFromBookmark' | 'tailEvents'> = {}) {
  const events: StateEvent[] = [];
  const watch = await state.follow(kind, options);
  const drained = watch.drain((batch) => events.push(...batch));
  return {
    events,
    async take() {
      await environment.settle();
      return brief(events.splice(0)).filter((text) => text !== 'noop');
    },
    async close() {
      await watch[Symbol.asyncDispose]();
      await drained;
    },
  };
}

describe('follow', () => {
  test('resumes after a cut with exactly what it missed', async () => {
    await using store = memoryState({ environment });
    const { state, cut, opened } = shaky(store);
    await store.create(thing('a'));
    const reader = await following(state, { bootstrapContents: true });
    expect(await reader.take()).toEqual(['created a', 'bootstrapped']);
    cut();
    await environment.settle();
    await store.create(thing('b'));
    await store.update(thing('a', 2), { currentVersion: '1' });
    expect(await reader.take()).toEqual([]);
    await environment.advance(200);
    expect(await reader.take()).toEqual(['created b', 'updated a']);
    expect(opened).toHaveLength(2);
    expect(opened[1]?.startFromBookmark).toBeDefined();
    await reader.close();
  });

  test('waits longer after each failure, and again little after a success', async () => {
    await using store = memoryState({ environment });
    const { state, cut, refuse, opened } = shaky(store);
    const reader = await following(state);
    refuse(new SteadystateError('Unavailable', 'nobody there'));
    cut();
    await environment.settle();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 12; attempt++) {
      const wait = environment.nextTimerMs ?? Number.NaN;
      waits.push(wait);
      await environment.advance(wait);
    }
    expect(opened).toHaveLength(13);
    for (const [index, wait] of waits.entries()) {
      const full = Math.min(100 * 2 ** index, 30_000);
      expect(wait).toBeGreaterThanOrEqual(full / 2);
      expect(wait).toBeLessThanOrEqual(full);
    }
    refuse(undefined);
    await environment.advance(30_000);
    await store.create(thing('a'));
    expect(await reader.take()).toEqual(['created a']);
    cut();
    await environment.settle();
    await environment.advance(100);
    await store.create(thing('b'));
    expect(await reader.take()).toEqual(['created b']);
    await reader.close();
  });

  test('tells the difference when its place is gone', async () => {
    await using store = memoryState({ environment, historySize: 4 });
    const { state, cut } = shaky(store);
    for (const id of ['gone', 'kept', 'remade', 'same']) await store.create(thing(id));
    const reader = await following(state, { bootstrapContents: true });
    await reader.take();
    cut();
    await environment.settle();
    await store.destroy({ ...kind, id: 'gone' });
    await store.update(thing('kept', 2), { currentVersion: '2' });
    await store.destroy({ ...kind, id: 'remade' });
    await store.create(thing('remade'));
    for (let index = 0; index < 40; index++) {
      await store.create(thing('brief'));
      await store.destroy({ ...kind, id: 'brief' });
    }
    await store.create(thing('fresh'));
    await environment.advance(200);
    await environment.settle();
    const events = reader.events.filter((event) => event.type !== 'noop');
    expect(brief(events)).toEqual(['destroyed gone', 'destroyed remade', 'created fresh', 'updated kept', 'created remade']);
    expect(events.every((event) => event.resync === true)).toBe(true);
    expect(reader.events.at(-1)?.bookmark).toBeDefined();
    reader.events.length = 0;
    await store.create(thing('later'));
    expect(await reader.take()).toEqual(['created later']);
    await reader.close();
  });

  test('a cut within a coalesced stretch tells nothing twice', async () => {
    await using store = memoryState({ environment });
    const [a, b] = [await store.create(thing('a')), await store.create(thing('b'))];
    const begun = Bytes.from(new Uint8Array([1]));
    const coalesced = (resource: Resource): StateEvent => ({ type: 'created', resource, bookmark: begun, resync: true });
    const rounds: StateEvent[][] = [
      [coalesced(a), { type: 'errored', error: new SteadystateError('Unavailable', 'the line was cut') }],
      [coalesced(a), coalesced(b)],
    ];
    const core: CoreState = Object.create(store, {
      watchKind: {
        value: async (_kind: unknown, options: WatchKindOptions = {}) => {
          const round = rounds.shift() ?? [];
          const source: EventSource = {
            ended: false,
            take: (max) => round.splice(0, max),
            whenReady: (callback) => void (round.length > 0 && callback()),
            close: () => {},
          };
          return createWatch(source, { environment, signal: options.signal });
        },
      },
    }) as CoreState;
    const reader = await following(wrapCore(core, { environment }));
    await environment.advance(1_000);
    expect(await reader.take()).toEqual(['created a', 'created b']);
    await reader.close();
  });

  test('another store in the place of the first: what is another thing there is told, whatever its version', async () => {
    await using first = memoryState({ environment });
    await using second = memoryState({ environment });
    for (const [store, size] of [
      [first, 1],
      [second, 2],
    ] as const) {
      await store.create(thing('same'));
      await store.create(thing('other', size));
    }
    let current: CoreState = first;
    const { state, cut } = shaky(
      new Proxy(first, {
        get: (_target, key) => {
          const member: unknown = Reflect.get(current, key);
          return typeof member === 'function' ? member.bind(current) : member;
        },
      }),
    );
    const reader = await following(state, { bootstrapContents: true });
    await reader.take();
    current = second;
    cut();
    await environment.advance(1_000);
    expect(await reader.take()).toEqual(['updated other']);
    await reader.close();
  });

  test('a cut before bootstrapped begins anew, and bootstrapped comes once', async () => {
    await using store = memoryState({ environment });
    const { state, cut } = shaky(store);
    for (const id of ['a', 'b']) await store.create(thing(id));
    const watch = await state.follow(kind, { bootstrapContents: true });
    cut();
    const events: StateEvent[] = [];
    const drained = watch.drain((batch) => events.push(...batch));
    await environment.settle();
    await environment.advance(200);
    await environment.settle();
    expect(brief(events).filter((text) => text !== 'noop')).toEqual(['created a', 'created b', 'bootstrapped']);
    await watch[Symbol.asyncDispose]();
    await drained;
  });

  test('an error that another try cannot mend is the last event', async () => {
    await using store = memoryState({ environment });
    const { state, cut, refuse } = shaky(store);
    const reader = await following(state);
    refuse(new SteadystateError('Forbidden', 'no longer'));
    cut();
    await environment.settle();
    await environment.advance(200);
    expect(await reader.take()).toEqual(['errored']);
    await reader.close();
  });

  test('the error of the first connection is the error of the call', async () => {
    await using store = memoryState({ environment });
    const { state, refuse } = shaky(store);
    refuse(new SteadystateError('Unavailable', 'nobody there'));
    await expect(state.follow(kind)).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test('ends with its signal while it waits to connect again', async () => {
    await using store = memoryState({ environment });
    const { state, cut, refuse } = shaky(store);
    const controller = new AbortController();
    const watch = await state.follow(kind, { signal: controller.signal });
    const drained = watch.drain(() => {});
    refuse(new SteadystateError('Unavailable', 'nobody there'));
    cut();
    await environment.settle();
    controller.abort();
    await drained;
    expect(environment.nextTimerMs === undefined || environment.nextTimerMs >= 9_000, 'only the idle timer of the store may be left').toBe(
      true,
    );
  });
});
