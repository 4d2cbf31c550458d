import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualEnvironment } from '../testing/index.ts';
import { createQueue } from './create-queue.ts';
import type { QueueItem } from './queue.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const fairness = 3;

type Step =
  | { readonly do: 'add'; readonly key: string; readonly priority: number; readonly afterMs: number }
  | { readonly do: 'take' }
  | { readonly do: 'end'; readonly which: number; readonly how: 'done' | 'requeue' | 'fail' | 'failAfter'; readonly afterMs: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'forget'; readonly key: string };

const key = fc.constantFrom(...keys);
const delay = fc.constantFrom(0, 1, 5, 10, 40);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('add' as const), key, priority: fc.constantFrom(-100, 0, 5), afterMs: delay }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('take' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat({ max: 4 }),
      how: fc.constantFrom('done' as const, 'requeue' as const, 'fail' as const, 'failAfter' as const),
      afterMs: delay,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 4, 5, 17) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), key }) },
);

/** A wish to run a key, that some start of a run has to meet. */
interface Wish {
  priority: number;
  order: number;
  /** When it is due. */
  at: number;
}

/** The rules in their plainest form: a list of wishes, searched from end to end. */
class Model {
  now = 0;
  readonly ready = new Map<string, Wish>();
  readonly delayed = new Map<string, Wish>();
  readonly running = new Map<string, Wish | undefined>();
  readonly backOff = new Map<string, { failures: number; until: number | undefined }>();
  #order = 0;
  #row = 0;

  add(name: string, priority: number, afterMs: number): void {
    const ready = this.ready.get(name);
    const delayed = this.delayed.get(name);
    if (afterMs > 0 && ready !== undefined) ready.priority = Math.max(ready.priority, priority);
    else if (afterMs > 0) {
      const at = this.now + afterMs;
      if (delayed === undefined) this.delayed.set(name, { priority, order: this.#order++, at });
      else {
        delayed.priority = Math.max(delayed.priority, priority);
        if (at < delayed.at) Object.assign(delayed, { at, order: this.#order++ });
      }
    } else this.#now(name, priority);
  }

  #now(name: string, priority: number): void {
    const ready = this.ready.get(name);
    if (this.running.has(name)) {
      const dirty = this.running.get(name);
      this.running.set(name, { priority: Math.max(dirty?.priority ?? priority, priority), order: 0, at: 0 });
    } else if (ready !== undefined) ready.priority = Math.max(ready.priority, priority);
    else {
      const earlier = this.delayed.get(name);
      this.delayed.delete(name);
      this.ready.set(name, { priority: Math.max(priority, earlier?.priority ?? priority), order: this.#order++, at: this.now });
    }
  }

  take(): { readonly name: string; readonly priority: number; readonly failures: number } | undefined {
    const waiting = [...this.ready].sort(([, left], [, right]) => right.priority - left.priority || left.order - right.order);
    const first = waiting[0];
    if (first === undefined) return undefined;
    const lower = waiting.filter(([, wish]) => wish.priority < first[1].priority).sort(([, left], [, right]) => left.order - right.order);
    let chosen = first;
    if (lower.length === 0) this.#row = 0;
    else if (this.#row < fairness) this.#row++;
    else {
      this.#row = 0;
      chosen = lower[0] as typeof first;
    }
    const [name, { priority }] = chosen;
    this.ready.delete(name);
    this.running.set(name, undefined);
    return { name, priority, failures: this.backOff.get(name)?.failures ?? 0 };
  }

  end(name: string, priority: number, how: 'done' | 'requeue' | 'fail' | 'failAfter', afterMs: number): void {
    const dirty = this.running.get(name);
    this.running.delete(name);
    const known = this.backOff.get(name) ?? { failures: 0, until: undefined };
    if (how === 'done' || how === 'requeue') this.backOff.delete(name);
    if (how === 'requeue') this.add(name, priority, afterMs);
    if (how === 'failAfter') {
      this.backOff.set(name, { ...known, until: undefined });
      this.add(name, priority, afterMs);
    }
    if (how === 'fail') {
      if (known.until === undefined || known.until <= this.now) {
        known.until = this.now + Math.min(5 * 2 ** known.failures, 40);
        known.failures++;
      }
      this.backOff.set(name, known);
      this.add(name, priority, known.until - this.now);
    }
    if (dirty !== undefined) this.#now(name, dirty.priority);
  }

  advance(ms: number): void {
    const end = this.now + ms;
    const due = [...this.delayed]
      .filter(([, wish]) => wish.at <= end)
      .sort(([, left], [, right]) => left.at - right.at || left.order - right.order);
    for (const [name, wish] of due) {
      this.now = wish.at;
      this.delayed.delete(name);
      this.#now(name, wish.priority);
    }
    this.now = end;
  }

  forget(name: string): void {
    this.backOff.delete(name);
    this.delayed.delete(name);
  }
}

test('does what the rules say, step by step', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 120 }), async (steps) => {
      const environment = manualEnvironment();
      const queue = createQueue(environment, { maxDelayMs: 40, fairness });
      const model = new Model();
      const running: QueueItem[] = [];
      const advance = async (ms: number): Promise<void> => {
        await environment.advance(ms);
        model.advance(ms);
      };
      const take = async (): Promise<QueueItem | undefined> => {
        const giveUp = new AbortController();
        const taken = queue.take(giveUp.signal);
        giveUp.abort();
        const item = await taken;
        const expected = model.take();
        expect(item && { name: item.key, priority: item.priority, failures: item.failures }).toEqual(expected);
        return item;
      };
      const add = (name: string, priority: number, afterMs: number): void => {
        queue.add(name, { priority, afterMs });
        model.add(name, priority, afterMs);
      };
      for (const now of steps) {
        if (now.do === 'add') add(now.key, now.priority, now.afterMs);
        else if (now.do === 'advance') await advance(now.ms);
        else if (now.do === 'forget') {
          queue.forget(now.key);
          model.forget(now.key);
        } else if (now.do === 'take') {
          const item = await take();
          if (item === undefined) continue;
          expect(running.map((other) => other.key)).not.toContain(item.key);
          running.push(item);
        } else {
          const [item] = running.splice(now.which, 1);
          if (item === undefined) continue;
          if (now.how === 'done') item.done();
          else if (now.how === 'requeue') item.requeue(now.afterMs);
          else if (now.how === 'fail') item.fail();
          else item.fail({ afterMs: now.afterMs });
          model.end(item.key, item.priority, now.how, now.afterMs);
        }
        expect(queue.length).toBe(model.ready.size + model.delayed.size);
        expect(queue.running).toBe(running.length);
        for (const name of keys) {
          const delayed = model.delayed.get(name);
          expect(queue.dueInMs(name)).toBe(delayed === undefined ? undefined : delayed.at - model.now);
        }
      }
      // Nothing is lost: all that was wished for runs in the end, and then it is quiet.
      for (const item of running.splice(0)) {
        item.done();
        model.end(item.key, item.priority, 'done', 0);
      }
      await advance(100);
      for (let item = await take(); item !== undefined; item = await take()) {
        item.done();
        model.end(item.key, item.priority, 'done', 0);
      }
      expect(queue.length).toBe(0);
      queue.shutDown();
      expect(environment.open.counts()).toEqual({});
    }),
    { numRuns: 150 },
  );
}, 60_000);

test('with several workers: never two on a key, nothing lost, at most one more run, first come first served', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key, afterMs: fc.constantFrom(0, 0, 0, 3), waitMs: fc.constantFrom(0, 0, 1, 2) }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      async (adds, workers) => {
        const environment = manualEnvironment();
        const queue = createQueue(environment);
        const active = new Set<string>();
        const starts: { readonly key: string; readonly at: number; readonly step: number }[] = [];
        const wanted: { readonly key: string; readonly step: number }[] = [];
        let time = 0;
        const work = async (): Promise<void> => {
          for (let item = await queue.take(); item !== undefined; item = await queue.take()) {
            expect(active).not.toContain(item.key);
            active.add(item.key);
            starts.push({ key: item.key, at: environment.elapsed(), step: time++ });
            await environment.sleep(2);
            active.delete(item.key);
            item.done();
          }
        };
        const ended = Array.from({ length: workers }, work);
        for (const { key: name, afterMs, waitMs } of adds) {
          queue.add(name, { afterMs });
          wanted.push({ key: name, step: time++ });
          await environment.advance(waitMs);
        }
        await environment.runUntilIdle();
        for (const { key: name, step: when } of wanted) {
          expect(
            starts.some((start) => start.key === name && start.step > when),
            `${name} added at ${when} never ran`,
          ).toBe(true);
        }
        for (const name of keys)
          expect(starts.filter((start) => start.key === name).length).toBeLessThanOrEqual(
            wanted.filter((wish) => wish.key === name).length,
          );
        queue.shutDown();
        await Promise.all(ended);
        expect(environment.open.counts()).toEqual({});
      },
    ),
    { numRuns: 60 },
  );
}, 60_000);
