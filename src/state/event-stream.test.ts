import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { tombstone } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { EventSource, StateEvent } from './index.ts';
import { createAggregatedWatch, createWatch, mapSource, sourceOf } from './index.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

const noop = (revision: number): StateEvent => ({ type: 'noop', revision });
const revisions = (events: readonly StateEvent[]): (number | undefined)[] => events.map((event) => event.revision);

/** A source that a test fills by hand. */
class ManualSource implements EventSource {
  readonly events: StateEvent[] = [];
  ended = false;
  closed = 0;
  #callbacks: (() => void)[] = [];

  push(...events: readonly StateEvent[]): void {
    this.events.push(...events);
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  take(max: number): readonly StateEvent[] {
    return this.events.splice(0, max);
  }

  whenReady(callback: () => void): void {
    if (this.events.length > 0 || this.ended) callback();
    else this.#callbacks.push(callback);
  }

  close(): void {
    this.closed++;
    this.ended = true;
    this.events.length = 0;
    this.#wake();
  }

  #wake(): void {
    for (const callback of this.#callbacks.splice(0)) callback();
  }
}

describe('a watch', () => {
  test('gives events in order, waits for more, and ends with its source', async () => {
    const source = new ManualSource();
    const iterator = createWatch(source, { environment })[Symbol.asyncIterator]();
    source.push(noop(1));
    const first = iterator.next();
    const second = iterator.next();
    const third = iterator.next();
    expect((await first).value?.revision).toBe(1);
    source.push(noop(2), noop(3));
    expect([(await second).value?.revision, (await third).value?.revision]).toEqual([2, 3]);
    source.push(noop(4));
    source.end();
    expect((await iterator.next()).value?.revision).toBe(4);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(source.closed).toBe(1);
  });

  test('ends after errored, whatever the source has left', async () => {
    const source = new ManualSource();
    source.push(noop(1), { type: 'errored', error: new Error('x') as never });
    const seen: string[] = [];
    for await (const event of createWatch(source, { environment })) seen.push(event.type);
    expect(seen).toEqual(['noop', 'errored']);
    expect(source.closed).toBe(1);
  });

  test('an abort before it began, while it waits, and with events at hand: done, no throw', async () => {
    const aborted = new ManualSource();
    aborted.push(noop(1));
    expect((await createWatch(aborted, { environment, signal: AbortSignal.abort() })[Symbol.asyncIterator]().next()).done).toBe(true);
    expect(aborted.closed).toBe(1);
    const controller = new AbortController();
    const waiting = createWatch(new ManualSource(), { environment, signal: controller.signal })[Symbol.asyncIterator]().next();
    const full = new ManualSource();
    full.push(noop(1), noop(2));
    const iterator = createWatch(full, { environment, signal: controller.signal })[Symbol.asyncIterator]();
    await iterator.next();
    controller.abort(new Error('enough'));
    expect((await waiting).done).toBe(true);
    expect((await iterator.next()).done).toBe(true);
  });

  test('lets go of the signal when it ends, so that a long-lived one keeps nothing', async () => {
    const { signal } = new AbortController();
    const watch = createWatch(new ManualSource(), { environment, signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await watch[Symbol.asyncDispose]();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('return settles at once beside a pending next', async () => {
    const iterator = createWatch(new ManualSource(), { environment })[Symbol.asyncIterator]();
    const pending = iterator.next();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await pending).toEqual({ done: true, value: undefined });
  });

  test('gives one iterator', async () => {
    const watch = createWatch(new ManualSource(), { environment });
    watch[Symbol.asyncIterator]();
    expect(() => watch[Symbol.asyncIterator]()).toThrow(expect.objectContaining({ code: 'Unsupported' }));
    expect(() => watch.drain(() => {})).toThrow(expect.objectContaining({ code: 'Unsupported' }));
    expect(() => sourceOf(watch)).toThrow(expect.objectContaining({ code: 'Unsupported' }));
    await watch[Symbol.asyncDispose]();
  });

  test('an endless source does not starve timers', async () => {
    const source: EventSource = { take: () => [noop(1)], whenReady: (callback) => callback(), ended: false, close: () => {} };
    let fired = false;
    setTimeout(() => {
      fired = true;
    }, 0);
    let seen = 0;
    for await (const _event of createWatch(source, { environment })) if (fired || ++seen > 1_000_000) break;
    expect(fired).toBe(true);
    const drained = createWatch(source, { environment });
    let drainFired = false;
    setTimeout(() => {
      drainFired = true;
      void drained[Symbol.asyncDispose]();
    }, 0);
    await drained.drain(() => {});
    expect(drainFired).toBe(true);
  });
});

describe('an aggregated watch', () => {
  test('gives batches larger than one breath', async () => {
    const source = new ManualSource();
    const watch = createAggregatedWatch(source, { environment });
    source.push(...Array.from({ length: 3000 }, (_, index) => noop(index)));
    const sizes: number[] = [];
    for await (const batch of watch) {
      sizes.push(batch.length);
      if (batch.at(-1)?.revision === 2999) break;
    }
    expect(sizes).toEqual([1024, 1024, 952]);
  });

  test('gives what is there as one batch, never an empty one', async () => {
    const source = new ManualSource();
    const iterator = createAggregatedWatch(source, { environment })[Symbol.asyncIterator]();
    source.push(noop(1), noop(2));
    expect(revisions((await iterator.next()).value ?? [])).toEqual([1, 2]);
    const next = iterator.next();
    source.push(noop(3));
    expect(revisions((await next).value ?? [])).toEqual([3]);
    await iterator.return?.();
  });
});

describe('drain', () => {
  test('delivers at once what is there, then what comes, and resolves at the end', async () => {
    const source = new ManualSource();
    source.push(noop(1));
    const seen: StateEvent[] = [];
    const drained = createWatch(source, { environment }).drain((batch) => seen.push(...batch));
    expect(revisions(seen), 'delivered before drain returns').toEqual([1]);
    source.push(noop(2), noop(3));
    expect(revisions(seen), 'delivered within the push').toEqual([1, 2, 3]);
    source.end();
    await drained;
  });

  test('rejects with what its reader throws, at once or later', async () => {
    const reason = new Error('mine');
    const fail = (): never => {
      throw reason;
    };
    const ready = new ManualSource();
    ready.push(noop(1));
    await expect(createWatch(ready, { environment }).drain(fail)).rejects.toBe(reason);
    const late = new ManualSource();
    const drained = createWatch(late, { environment }).drain(fail);
    late.push(noop(1));
    await expect(drained).rejects.toBe(reason);
    expect(late.closed).toBe(1);
  });

  test('ends quietly on an abort', async () => {
    const controller = new AbortController();
    const drained = createWatch(new ManualSource(), { environment, signal: controller.signal }).drain(() => {});
    controller.abort();
    await drained;
  });
});

describe('forEach', () => {
  test('hands over single events at once, then what comes, and resolves at the end', async () => {
    const source = new ManualSource();
    source.push(noop(1), noop(2));
    const seen: StateEvent[] = [];
    const ended = createWatch(source, { environment }).forEach((event) => seen.push(event));
    expect(revisions(seen), 'delivered before forEach returns').toEqual([1, 2]);
    source.push(noop(3), noop(4));
    expect(revisions(seen), 'delivered within the push').toEqual([1, 2, 3, 4]);
    source.end();
    await ended;
  });

  test('ends after errored', async () => {
    const source = new ManualSource();
    source.push(noop(1), { type: 'errored', error: new Error('x') as never });
    const seen: string[] = [];
    await createWatch(source, { environment }).forEach((event) => seen.push(event.type));
    expect(seen).toEqual(['noop', 'errored']);
    expect(source.closed).toBe(1);
  });

  test('while a promise of the handler is open the source is left alone, whatever comes', async () => {
    const source = new ManualSource();
    const seen: (number | undefined)[] = [];
    let open = (): void => {};
    const ended = createWatch(source, { environment }).forEach((event) => {
      seen.push(event.revision);
      return new Promise<void>((resolve) => {
        open = resolve;
      });
    });
    source.push(noop(1));
    source.push(noop(2));
    expect([seen, revisions(source.events)]).toEqual([[1], [2]]);
    for (const revision of [2, 3]) {
      open();
      await expect.poll(() => seen.at(-1)).toBe(revision);
      source.push(noop(revision + 1));
    }
    source.end();
    for (let done = false; !done; await Promise.resolve()) {
      open();
      done = seen.at(-1) === 4;
    }
    open();
    await ended;
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  test('an abort beside a handler at work: resolves when that is done, rejects with what it throws', async () => {
    for (const reason of [undefined, new Error('mine')]) {
      const controller = new AbortController();
      const source = new ManualSource();
      source.push(noop(1), noop(2));
      const seen: (number | undefined)[] = [];
      let working = true;
      const ended = createWatch(source, { environment, signal: controller.signal }).forEach(async (event) => {
        seen.push(event.revision);
        controller.abort();
        await environment.breathe();
        working = false;
        if (reason !== undefined) throw reason;
      });
      if (reason === undefined) await ended;
      else await expect(ended).rejects.toBe(reason);
      expect([working, seen]).toEqual([false, [1]]);
    }
  });

  test('a handler that closes the watch and throws at once is not taken for one that ended well', async () => {
    const source = new ManualSource();
    source.push(noop(1));
    const watch = createWatch(source, { environment });
    const ended = watch.forEach(() => {
      void watch[Symbol.asyncDispose]();
      throw new Error('mine');
    });
    await expect(ended).rejects.toThrow('mine');
  });

  test('a source that calls back twice is not read twice', async () => {
    const events: StateEvent[] = [];
    let callbacks: (() => void)[] = [];
    const source: EventSource = {
      take: (max) => events.splice(0, max),
      whenReady: (callback) => callbacks.push(callback, callback),
      ended: false,
      close: () => {},
    };
    const watch = createWatch(source, { environment });
    const seen: (number | undefined)[] = [];
    const ended = watch.forEach(async ({ revision }) => {
      await environment.breathe();
      seen.push(revision);
    });
    for (const revision of [1, 2, 3]) {
      await expect.poll(() => callbacks.length).toBe(2);
      events.push(noop(revision));
      const told = callbacks;
      callbacks = [];
      for (const callback of told) callback();
      await expect.poll(() => seen.at(-1)).toBe(revision);
    }
    await watch[Symbol.asyncDispose]();
    await ended;
    expect(seen).toEqual([1, 2, 3]);
  });

  test('an endless source does not starve timers', async () => {
    const source: EventSource = { take: () => [noop(1)], whenReady: (callback) => callback(), ended: false, close: () => {} };
    for (const handle of [() => undefined, () => Promise.resolve()]) {
      const watch = createWatch(source, { environment });
      let fired = false;
      setTimeout(() => {
        fired = true;
        void watch[Symbol.asyncDispose]();
      }, 0);
      await watch.forEach(handle);
      expect(fired).toBe(true);
    }
  });
});

describe('mapSource and sourceOf', () => {
  test('a wrapper drops and adds events, and closing it closes what is below', async () => {
    const below = new ManualSource();
    const inner = createWatch(below, { environment });
    const mapped = mapSource(sourceOf(inner), (batch) =>
      batch.flatMap((event) => (event.revision === 2 ? [] : event.revision === 3 ? [event, event] : [event])),
    );
    const iterator = createWatch(mapped, { environment })[Symbol.asyncIterator]();
    below.push(noop(2));
    const next = iterator.next();
    below.push(noop(3), noop(4));
    expect([(await next).value?.revision, (await iterator.next()).value?.revision, (await iterator.next()).value?.revision]).toEqual([
      3, 3, 4,
    ]);
    await iterator.return?.();
    expect(below.closed).toBe(1);
  });

  test('ends when the watch below is disposed by its owner', async () => {
    const inner = createWatch(new ManualSource(), { environment });
    const iterator = createWatch(sourceOf(inner), { environment })[Symbol.asyncIterator]();
    const next = iterator.next();
    await inner[Symbol.asyncDispose]();
    expect((await next).done).toBe(true);
  });

  test('a watch that was made elsewhere is Unsupported', () => {
    const event: StateEvent = { type: 'destroyed', resource: tombstone({ namespace: 'a', type: 'b', id: 'c' }) };
    expect(() => sourceOf([event] as never)).toThrow(expect.objectContaining({ code: 'Unsupported' }));
  });
});
