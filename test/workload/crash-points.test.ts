import { afterEach, expect, test } from 'vitest';
import { Crash } from './fake-port.ts';
import { app, boxRef, Harness } from './harness.ts';

let harness: Harness;

afterEach(() => expect(harness.environment.open.counts()).toEqual({}));

/** A life of a workload: it comes up, changes, loses children, and goes. Answers what was written to children, in order. */
async function live(step: () => Promise<void>): Promise<readonly string[]> {
  harness.ask({ a: 1, b: 1, c: 1 });
  await step();
  expect(harness.condition('Ready')).toBe('True Ready');
  harness.ask({ a: 2, d: 1 });
  await step();
  expect(harness.present).toEqual(['a', 'd']);
  expect(harness.status.children.map(({ name, state }) => `${name} ${state}`)).toEqual(['a applied', 'd applied']);
  expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 2 });
  harness.port.user(app, { deleting: true });
  await step();
  expect([harness.present, harness.view.finalizers, harness.view.status]).toEqual([[], [], undefined]);
  return harness.port.writes.filter((write) => write.includes('Boxes/')).sort();
}

/** Runs until nothing is written; a process that ends is started again. */
async function throughCrashes(): Promise<void> {
  for (let lives = 0; lives < 200; lives++) {
    const before = harness.port.writes.length;
    try {
      await harness.reconcile();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
    }
    if (crashed) {
      crashed = false;
      harness.restart();
    } else if (harness.port.writes.length === before) return;
  }
  throw new Error('it does not come to rest');
}

let crashed = false;

/** From the given write on nothing of this process reaches the store any more, until it is started anew. */
function crashAt(place: number, when: 'before' | 'after'): () => boolean {
  let seen = 0;
  let happened = false;
  const die = (): void => {
    happened = true;
    crashed = true;
    throw new Crash('the process ended');
  };
  harness.port.before = () => {
    if (crashed) throw new Crash('there is no process');
    if (when === 'before' && !happened && ++seen === place) die();
  };
  harness.port.after = () => {
    if (when === 'after' && !happened && ++seen === place) die();
  };
  return () => happened;
}

test.each(['before', 'after'] as const)('a process that ends %s any write: the same end, the same writes to children', async (when) => {
  harness = new Harness();
  crashed = false;
  const undisturbed = await live(throughCrashes);
  expect(undisturbed).toHaveLength(4 + 1 + 2 * 4);
  let places = 0;
  for (let place = 1; ; place++) {
    harness = new Harness();
    crashed = false;
    const happened = crashAt(place, when);
    expect(await live(throughCrashes), `crash ${when} write ${place}`).toEqual(undisturbed);
    if (!happened()) break;
    places++;
  }
  expect(places).toBeGreaterThan(15);
});

test('processes that end again and again, each a write further', async () => {
  harness = new Harness();
  crashed = false;
  const undisturbed = await live(throughCrashes);
  harness = new Harness();
  harness.port.before = () => {
    if (crashed) throw new Crash('there is no process');
  };
  harness.port.after = () => {
    crashed = true;
    throw new Crash('the process ended');
  };
  expect(await live(throughCrashes)).toEqual(undisturbed);
});
