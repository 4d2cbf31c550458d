// @ts-check
import { check, Measures } from './measure.mjs';
import { kind, makeLabelled, makeThing, makeThings, openState, shuffled } from './things.mjs';

/** How a reader asks for events. @typedef {'next' | 'each' | 'batch'} By */

/**
 * Counts the events of a watch until it has seen all writes.
 * @param {any} watch
 * @param {number} writes
 * @param {By} by
 */
async function read(watch, writes, by) {
  let seen = 0;
  const take = (/** @type {import('steadystate').StateEvent} */ event) => {
    if (event.type === 'errored') throw new Error(`killed after ${seen} events`, { cause: event.error });
    seen++;
    return event.revision;
  };
  switch (by) {
    case 'batch':
      for await (const batch of watch) {
        for (const event of batch) take(event);
        if (seen >= writes) break;
      }
      break;
    case 'each':
      await watch.forEach((/** @type {import('steadystate').StateEvent} */ event) => {
        take(event);
        if (seen >= writes) void watch[Symbol.asyncDispose]();
      });
      break;
    case 'next':
      for await (const event of watch) {
        take(event);
        if (seen >= writes) break;
      }
  }
  check(seen === writes, `${seen} events, not ${writes}`);
}

/** @param {import('steadystate').State} state @param {By} by */
const open = (state, by) => (by === 'batch' ? state.watchKindAggregated(kind) : state.watchKind(kind));

/**
 * Delivers every write of a writer that does not pause to every watcher.
 * @param {{ watchers: number, writes: number, aggregated: boolean, each?: boolean, stalled: boolean }} options
 */
export async function fanOut({ watchers, writes, aggregated, each, stalled }) {
  const by = aggregated ? 'batch' : each ? 'each' : 'next';
  await round(Math.min(watchers, 100), Math.min(writes, 10_000), by, stalled, new Measures());
  const measures = new Measures();
  await round(watchers, writes, by, stalled, measures);
  return measures;
}

/** @param {number} watchers @param {number} writes @param {By} by @param {boolean} stalled @param {Measures} measures */
async function round(watchers, writes, by, stalled, measures) {
  const state = openState();
  const things = makeThings('small', writes);
  /** @type {any[]} */
  const watches = [];
  for (let index = 0; index < watchers; index++) watches.push(await open(state, by));
  const stuck = stalled ? await open(state, by) : undefined;
  await measures.time('deliveries', watchers * writes, async () => {
    const readers = watches.map((watch) => read(watch, writes, by));
    for (const thing of things) await state.create(thing);
    await Promise.all(readers);
  });
  await stuck?.[Symbol.asyncDispose]();
}

/** Gives all contents to watchers that come at once. @param {{ size: number, watchers: number }} options */
export async function bootstrap({ size, watchers }) {
  const measures = new Measures();
  // Some go before, so that what is measured was compiled: the order of many ids is made seldom, and the compiler is in no hurry.
  for (let round = 0; round < 3; round++) await bootstrapOf(Math.min(size, 100_000), Math.min(watchers, 10), new Measures());
  await bootstrapOf(size, watchers, measures);
  return measures;
}

/** @param {number} size @param {number} watchers @param {Measures} measures */
async function bootstrapOf(size, watchers, measures) {
  const state = openState();
  for (const index of shuffled(size)) await state.create(makeLabelled('fields', index));
  // The first after many creates brings the ids into order, which later ones find.
  for (const part of ['first', 'later'])
    await measures.time(part, watchers * (size + 1), async () => {
      const one = async () => read(await state.watchKindAggregated(kind, { bootstrapContents: true }), size + 1, 'batch');
      await Promise.all(Array.from({ length: watchers }, one));
    });
}

/** Measures single steps beside `size` resources of the kind. @param {{ size: number, operations: number }} options */
export async function growth({ size, operations }) {
  await steps(1_000, 5_000, new Measures());
  const measures = new Measures();
  await steps(size, operations, measures);
  return measures;
}

/** @param {number} size @param {number} operations @param {Measures} measures */
async function steps(size, operations, measures) {
  const state = openState();
  for (const index of shuffled(size)) await state.create(makeThing('small', index));
  const added = Array.from({ length: operations }, (_, index) => makeThing('small', size + index));
  const update = async () => {
    for (let index = 0; index < added.length; index++) added[index] = await state.update(/** @type {any} */ (added[index]));
  };
  await measures.time('create', operations, async () => {
    for (let index = 0; index < added.length; index++) added[index] = await state.create(/** @type {any} */ (added[index]));
  });
  await measures.time('update', operations, update);
  const watch = await state.watchKind(kind);
  await measures.time('delivery', operations, async () => {
    const reader = read(watch, operations, 'next');
    await update();
    await reader;
  });
}
