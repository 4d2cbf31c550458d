// @ts-check
import { check, heapBytes, Measures } from './measure.mjs';
import { kind, makeThing, makeThings, openState, pointerOf, shuffled } from './things.mjs';

const hotKeys = 1_000;
const warmUpSize = 100_000;

/**
 * Creates, reads, updates and destroys every resource, and then does all of it mixed. A smaller run goes before.
 * @param {{ size: number, shape: string }} options
 */
export async function crud({ size, shape }) {
  await run(Math.min(size, warmUpSize), shape, new Measures());
  const measures = new Measures();
  await run(size, shape, measures);
  return measures;
}

/** @param {number} size @param {string} shape @param {Measures} measures */
async function run(size, shape, measures) {
  const state = openState();
  const things = makeThings(shape, size);
  const pointers = things.map((_, index) => pointerOf(index));
  const order = shuffled(size);
  /** @type {import('steadystate').Resource[]} */
  const updates = [];

  await measures.time('create', size, async () => {
    for (const thing of things) await state.create(thing);
  });
  for (const [name, keys] of /** @type {const} */ ([
    ['get-hot', Math.min(hotKeys, size)],
    ['get-random', size],
  ])) {
    await measures.time(name, size, async () => {
      for (let index = 0; index < size; index++) {
        const pointer = pointers[order[index % keys] ?? 0];
        const { metadata } = await state.get(/** @type {any} */ (pointer));
        if (metadata.id !== pointer?.id) throw new Error(`found ${metadata.id}`);
      }
    });
  }
  /** @type {import('steadystate').UpdateOptions[]} */
  const versions = [];
  for (let index = 0; index < size; index++) {
    updates.push(makeThing(shape, index, 1));
    versions.push({ currentVersion: (await state.get(/** @type {any} */ (pointers[index]))).metadata.version });
  }
  await measures.time('update', size, async () => {
    for (const index of order) await state.update(/** @type {any} */ (updates[index]), versions[index]);
  });
  const { items, revision } = await state.list(kind);
  check(items.length === size && revision === size * 2, `${items.length} resources after the updates, at revision ${revision}`);
  await measures.time('destroy', size, async () => {
    for (const index of order) await state.destroy(/** @type {any} */ (pointers[index]));
  });
  await mixed(state, things, updates, pointers, order, measures);
}

/**
 * Walks over the keys again: a step creates one, reads five times, updates what it created, and every second one destroys
 * what the step before created.
 * @param {import('steadystate').State} state
 * @param {any[]} things
 * @param {any[]} updates
 * @param {any[]} pointers
 * @param {any[]} order
 * @param {Measures} measures
 */
async function mixed(state, things, updates, pointers, order, measures) {
  let operations = 0;
  let present = 0;
  await measures.time('mixed', 0, async () => {
    for (let step = 0; step < order.length; step++) {
      const index = order[step];
      const created = await state.create(things[index]);
      operations++;
      present++;
      for (let read = 0; read < 5; read++) {
        // Those of odd steps are there to stay; before the first of them there is the one of this step.
        const key = step === 0 ? index : order[((step * (7 + 2 * read)) % ((step + 1) >> 1)) * 2 + 1];
        const { metadata } = await state.get(pointers[key]);
        if (metadata.id !== pointers[key].id) throw new Error(`found ${metadata.id}`);
        operations++;
      }
      await state.update(updates[index], { currentVersion: created.metadata.version });
      operations++;
      if (step % 2 === 1) {
        await state.destroy(pointers[order[step - 1]]);
        operations++;
        present--;
      }
    }
  });
  const { items } = await state.list(kind);
  check(items.length === present, `${items.length} resources are left, not ${present}`);
  const part = measures.parts.mixed;
  if (part !== undefined) part.operations = operations;
}

/** @param {{ size: number, shape: string }} options */
export async function perResource({ size, shape }) {
  const state = openState();
  const before = heapBytes();
  for (let index = 0; index < size; index++) await state.create(makeThing(shape, index));
  const bytes = heapBytes() - before;
  const found = await state.get(pointerOf(size - 1));
  check(found.metadata.id === pointerOf(size - 1).id, `found ${found.metadata.id}`);
  const measures = new Measures();
  measures.parts.resource = { operations: size, nanoseconds: 0, cpuNanoseconds: 0, bytes: bytes / size };
  return measures;
}
