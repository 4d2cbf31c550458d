import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ManualEnvironment } from '../testing/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import { createQueue } from './create-queue.ts';
import type { KeyedQueue, QueueItem, QueueOptions } from './queue.ts';

let environment: ManualEnvironment;
let queue: KeyedQueue;

function start(options?: QueueOptions): void {
  environment = manualEnvironment();
  queue = createQueue(environment, options);
}

beforeEach(() => start());

afterEach(() => {
  queue.shutDown();
  expect(environment.open.counts()).toEqual({});
});

async function take(): Promise<QueueItem> {
  const taken = await takeNow();
  if (taken === undefined) throw new Error('nothing is ready');
  return taken;
}

/** What is ready now, if anything. */
async function takeNow(): Promise<QueueItem | undefined> {
  const giveUp = new AbortController();
  const taken = queue.take(giveUp.signal);
  giveUp.abort();
  return taken;
}

/** Takes and finishes all that is ready. */
async function takeAll(): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let item = await takeNow(); item !== undefined; item = await takeNow()) {
    keys.push(item.key);
    item.done();
  }
  return keys;
}

describe('one key', () => {
  test('is there once, however often it is added', async () => {
    for (let count = 0; count < 3; count++) queue.add('a');
    expect(queue.length).toBe(1);
    expect(await takeAll()).toEqual(['a']);
  });

  test('counts as ready from when it is due until it is taken', async () => {
    const told: number[] = [];
    queue.shutDown();
    start({ onReady: (ready) => told.push(ready) });
    queue.add('a');
    queue.add('a');
    queue.add('later', { afterMs: 10 });
    expect(told).toEqual([1]);
    (await take()).requeue(1_000);
    expect(told).toEqual([1, 0]);
    await environment.advance(10);
    expect(told).toEqual([1, 0, 1]);
    queue.shutDown();
    expect(told).toEqual([1, 0, 1, 0]);
  });

  test('never runs twice at once: added while it runs, it runs once more', async () => {
    queue.add('a');
    const item = await take();
    for (let count = 0; count < 3; count++) queue.add('a');
    expect(await takeNow()).toBeUndefined();
    item.done();
    expect(await takeAll()).toEqual(['a']);
  });

  test('added while it runs, it runs once more after a failure too, without waiting for the back-off', async () => {
    queue.add('a');
    const item = await take();
    queue.add('a');
    item.fail();
    expect((await take()).failures).toBe(1);
  });

  test('has one ending', async () => {
    queue.add('a');
    const item = await take();
    item.done();
    expect(() => item.done()).toThrow(/already finished/);
    expect(() => item.requeue(1)).toThrow(/already finished/);
    expect(() => item.fail()).toThrow(/already finished/);
    expect(queue.running).toBe(0);
  });

  test('is forgotten once nothing is known of it', async () => {
    queue.add('a');
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(5);
    queue.forget('a');
    expect(queue.dueInMs('a')).toBeUndefined();
    expect(queue.length).toBe(0);
  });

  test('tells how long it was ready', async () => {
    queue.add('a', { afterMs: 50 });
    await environment.advance(80);
    expect((await take()).waitedMs).toBe(30);
  });
});

describe('order', () => {
  test('first come, first served', async () => {
    for (const key of ['c', 'a', 'b', 'a']) queue.add(key);
    expect(await takeAll()).toEqual(['c', 'a', 'b']);
  });

  test('higher priority first; a duplicate takes the higher one and keeps its place in the row', async () => {
    queue.add('low', { priority: -100 });
    queue.add('x');
    queue.add('raised', { priority: -100 });
    queue.add('y');
    queue.add('raised');
    queue.add('x', { priority: -100 });
    expect(await takeAll()).toEqual(['x', 'raised', 'y', 'low']);
  });

  test('what is asked for later while it waits already takes the higher priority too', async () => {
    queue.add('a');
    queue.add('b');
    queue.add('b', { priority: 1, afterMs: 100 });
    expect(await takeAll()).toEqual(['b', 'a']);
  });

  test('a delayed key that is added plainly keeps its higher priority', async () => {
    queue.add('a', { priority: 5, afterMs: 100 });
    queue.add('b', { priority: 1 });
    queue.add('a', { priority: -100 });
    expect(await takeAll()).toEqual(['a', 'b']);
  });

  test('a key added while it runs keeps the priority of that add, the highest of several', async () => {
    queue.add('a', { priority: -100 });
    const item = await take();
    queue.add('a', { priority: 3 });
    queue.add('a', { priority: -100 });
    queue.add('b', { priority: 2 });
    item.done();
    expect(await takeAll()).toEqual(['a', 'b']);
  });

  test('a key delayed while it runs has the priority of that add, not of the run', async () => {
    queue.add('a', { priority: -100 });
    const item = await take();
    queue.add('a', { priority: 7, afterMs: 10 });
    item.done();
    queue.add('b', { priority: 1, afterMs: 10 });
    await environment.advance(10);
    expect((await take()).priority).toBe(7);
  });

  test('a requeue keeps its priority', async () => {
    queue.add('a', { priority: -100 });
    (await take()).requeue(10);
    await environment.advance(10);
    expect((await take()).priority).toBe(-100);
  });

  test('after eight of higher priority in a row one lower has its turn', async () => {
    for (let count = 0; count < 20; count++) queue.add(`high${count}`);
    for (let count = 0; count < 3; count++) queue.add(`low${count}`, { priority: -100 });
    const order = (await takeAll()).map((key) => key.replace(/\d+/, ''));
    expect(order.map((word, place) => (word === 'low' ? place : -1)).filter((place) => place >= 0)).toEqual([8, 17, 22]);
  });

  test('the lowest of three priorities does not starve either', async () => {
    queue.add('lowest', { priority: -200 });
    let runs = 0;
    for (let round = 0; round < 100; round++) {
      queue.add(`high${round}`);
      queue.add(`middle${round}`, { priority: -100 });
      const item = await take();
      runs++;
      item.done();
      if (item.key === 'lowest') break;
    }
    expect(runs).toBe(9);
  });

  test('many priorities, used once each', async () => {
    for (let priority = 0; priority < 40; priority++) queue.add(`${priority}`, { priority });
    const order = await takeAll();
    expect(order).toHaveLength(40);
    expect(order.slice(0, 8)).toEqual(['39', '38', '37', '36', '35', '34', '33', '32']);
    queue.add('again', { priority: 3 });
    expect(await takeAll()).toEqual(['again']);
  });
});

describe('delays', () => {
  test('a delayed key moves only earlier', async () => {
    queue.add('a', { afterMs: 100 });
    queue.add('a', { afterMs: 200 });
    expect(queue.dueInMs('a')).toBe(100);
    queue.add('a', { afterMs: 50 });
    expect(queue.dueInMs('a')).toBe(50);
    await environment.advance(49);
    expect(await takeNow()).toBeUndefined();
    await environment.advance(1);
    expect(await takeAll()).toEqual(['a']);
    await environment.advance(1000);
    expect(await takeNow()).toBeUndefined();
  });

  test('earliest first, equal times first come first served', async () => {
    queue.add('late', { afterMs: 20 });
    queue.add('x', { afterMs: 10 });
    queue.add('y', { afterMs: 10 });
    queue.add('z', { afterMs: 10 });
    await environment.advance(20);
    expect(await takeAll()).toEqual(['x', 'y', 'z', 'late']);
  });

  test('a plain add runs a delayed key at once, and once', async () => {
    queue.add('a', { afterMs: 100 });
    queue.add('a');
    expect(await takeAll()).toEqual(['a']);
    await environment.advance(1000);
    expect(await takeNow()).toBeUndefined();
  });

  test('a key that gets due while it runs runs once more', async () => {
    queue.add('a');
    const item = await take();
    queue.add('a', { afterMs: 10 });
    await environment.advance(10);
    expect(await takeNow()).toBeUndefined();
    item.done();
    expect(await takeAll()).toEqual(['a']);
  });

  test('a delay added while a key runs outlives that run', async () => {
    queue.add('a');
    const item = await take();
    queue.add('a', { afterMs: 10 });
    item.requeue(1000);
    expect(queue.dueInMs('a')).toBe(10);
  });

  test('each run of a key replaces its earlier requeue', async () => {
    queue.add('a');
    (await take()).requeue(100);
    queue.add('a');
    (await take()).done();
    await environment.advance(1000);
    expect(await takeNow()).toBeUndefined();
    queue.add('a');
    (await take()).requeue(100);
    queue.add('a');
    (await take()).requeue(500);
    expect(queue.dueInMs('a')).toBe(500);
  });

  test('a requeue of nothing runs again at once', async () => {
    queue.add('a');
    (await take()).requeue(0);
    expect(await takeAll()).toEqual(['a']);
  });

  test('longer than a timer can take', async () => {
    queue.add('a', { afterMs: 2 ** 40 });
    expect(queue.dueInMs('a')).toBe(2 ** 40);
  });
});

describe('back-off', () => {
  async function failAndMeasure(times: number): Promise<readonly (number | undefined)[]> {
    const waits: (number | undefined)[] = [];
    for (let count = 0; count < times; count++) {
      (await take()).fail();
      const waitMs = queue.dueInMs('a');
      waits.push(waitMs);
      await environment.advance(waitMs ?? 0);
    }
    return waits;
  }

  test('5 ms, doubled with each failure, at most 60 s', async () => {
    queue.add('a');
    expect(await failAndMeasure(16)).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 40960, 60000, 60000]);
    expect((await take()).failures).toBe(16);
  });

  test('the bounds are options, and thousands of failures do not overflow', async () => {
    start({ baseDelayMs: 1, maxDelayMs: 2 });
    queue.add('a');
    const waits = await failAndMeasure(1100);
    expect(waits.slice(0, 3)).toEqual([1, 2, 2]);
    expect(waits.at(-1)).toBe(2);
  });

  test('success forgets it, requeued or not', async () => {
    for (const finish of [(item: QueueItem) => item.done(), (item: QueueItem) => item.requeue(1)]) {
      start();
      queue.add('a');
      await failAndMeasure(3);
      finish(await take());
      await environment.advance(1);
      queue.add('a');
      expect(await failAndMeasure(1)).toEqual([5]);
    }
  });

  test('is per key', async () => {
    queue.add('a');
    await failAndMeasure(3);
    queue.add('b');
    (await take()).done();
    const b = await take();
    expect([b.key, b.failures]).toEqual(['b', 0]);
  });

  test('an event may run a key in its back-off; a failure then keeps the deadline and the count', async () => {
    queue.add('a');
    await failAndMeasure(5);
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(160);
    await environment.advance(60);
    for (let count = 0; count < 3; count++) {
      queue.add('a');
      const item = await take();
      expect(item.failures).toBe(6);
      item.fail();
      expect(queue.dueInMs('a')).toBe(100);
    }
    await environment.advance(100);
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(320);
  });

  test('so does one that was asked for with a delay within the wait', async () => {
    queue.add('a');
    await failAndMeasure(5);
    (await take()).fail();
    queue.add('a', { afterMs: 50 });
    await environment.advance(50);
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(110);
  });

  test('a failure after the deadline, of a run that began before it, counts', async () => {
    queue.add('a');
    (await take()).fail();
    queue.add('a');
    const item = await take();
    await environment.advance(5);
    item.fail();
    expect(queue.dueInMs('a')).toBe(10);
  });

  test('an interval of its own does not advance it', async () => {
    queue.add('a');
    await failAndMeasure(3);
    (await take()).fail({ afterMs: 7 });
    expect(queue.dueInMs('a')).toBe(7);
    await environment.advance(7);
    const item = await take();
    expect(item.failures).toBe(3);
    item.fail();
    expect(queue.dueInMs('a')).toBe(40);
  });

  test('an interval of its own is no deadline that a later failure would keep', async () => {
    queue.add('a');
    await failAndMeasure(1);
    (await take()).fail({ afterMs: 3_600_000 });
    queue.add('a');
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(10);
  });

  test('goes with the incarnation, a plain add that waits stays', async () => {
    queue.add('a');
    await failAndMeasure(4);
    queue.forget('a');
    expect(queue.length).toBe(1);
    (await take()).fail();
    expect(queue.dueInMs('a')).toBe(5);
  });

  test('forgotten while it runs, the add made meanwhile stays', async () => {
    queue.add('a');
    const item = await take();
    queue.add('a');
    queue.forget('a');
    item.done();
    expect(await takeAll()).toEqual(['a']);
  });
});

describe('takers', () => {
  test('are served in their order, as keys come', async () => {
    const first = queue.take();
    const second = queue.take();
    queue.add('a');
    queue.add('b');
    expect((await first)?.key).toBe('a');
    expect((await second)?.key).toBe('b');
    expect(queue.running).toBe(2);
  });

  test('an aborted one gets nothing, and takes nothing from the others', async () => {
    const giveUp = new AbortController();
    const first = queue.take(giveUp.signal);
    const second = queue.take();
    giveUp.abort();
    expect(await first).toBeUndefined();
    queue.add('a');
    expect((await second)?.key).toBe('a');
    expect(await queue.take(giveUp.signal)).toBeUndefined();
  });

  test('none is left waiting after a shut-down, and no timer', async () => {
    const waiting = queue.take();
    queue.add('a', { afterMs: 100 });
    queue.add('b');
    const item = await waiting;
    const next = queue.take();
    queue.shutDown();
    expect(await next).toBeUndefined();
    expect(await queue.take()).toBeUndefined();
    item?.fail();
    queue.add('c');
    queue.add('d', { afterMs: 5 });
    expect(await queue.take()).toBeUndefined();
    expect(environment.open.counts()).toEqual({});
  });
});

test('no back-off at all stays none, however often a key fails', async () => {
  const eager = createQueue(environment, { baseDelayMs: 0 });
  eager.add('a');
  for (let failures = 0; failures < 1_200; failures++) {
    const item = await eager.take();
    expect(item?.failures).toBe(failures);
    item?.fail();
  }
  expect(eager.dueInMs('a')).toBeUndefined();
  eager.shutDown();
});

describe('bad input', () => {
  test('of options is named', () => {
    expect(() => createQueue(environment, { maxDelayMs: Number.POSITIVE_INFINITY })).toThrow(/maxDelayMs must be a finite number from 0/);
    expect(() => createQueue(environment, { baseDelayMs: -1 })).toThrow(/baseDelayMs/);
    expect(() => createQueue(environment, { fairness: 0 })).toThrow(/fairness must be a finite number from 1, found 0/);
  });

  test('of an add leaves nothing behind', () => {
    expect(() => queue.add('a', { afterMs: Number.NaN })).toThrow(/afterMs must be a finite number from 0, found NaN/);
    expect(() => queue.add('a', { afterMs: -1 })).toThrow(RangeError);
    expect(() => queue.add('a', { priority: Number.NaN })).toThrow(/priority/);
    expect(queue.length).toBe(0);
  });

  test('of an ending leaves the item open', async () => {
    queue.add('a');
    const item = await take();
    expect(() => item.requeue(Number.POSITIVE_INFINITY)).toThrow(RangeError);
    expect(() => item.fail({ afterMs: Number.NaN })).toThrow(RangeError);
    expect(queue.running).toBe(1);
    item.done();
    expect(queue.running).toBe(0);
  });
});
