// @ts-check
import { defineResource, nodeEnvironment, wrapCore } from 'steadystate';
import { memoryState } from 'steadystate/memory';

const definition = defineResource({
  type: 'Things.bench.steadystate.dev',
  defaultNamespace: 'bench',
  // Any schema will do: things are made before the clock runs.
  spec: { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value: /** @type {Record<string, string>} */ (value) }) } },
});

export const kind = definition.kind();

/** A store as programs make it. */
export function openState() {
  const environment = nodeEnvironment();
  return wrapCore(memoryState({ environment }), { environment });
}

/** @param {number} index */
export const idOf = (index) => `thing-${index}`;

/** @param {number} index */
export const pointerOf = (index) => definition.pointer(flat(idOf(index)));

/**
 * 512 bytes in one of two shapes: 8 fields of some 50 characters (and a short one), or one long string.
 * @param {string} shape
 * @param {number} index
 * @param {number} revision Varies the contents.
 */
function specOf(shape, index, revision) {
  const field = (/** @type {number} */ number) => `${index}-${revision}-${number}-`.padEnd(50, 'x');
  switch (shape) {
    case 'fields':
      return flat({
        field0: field(0),
        field1: field(1),
        field2: field(2),
        field3: field(3),
        field4: field(4),
        field5: field(5),
        field6: field(6),
        field7: field(7),
        text: 'a string',
      });
    case 'text':
      return flat({ text: `${index}-${revision}-`.padEnd(512, 'x') });
    case 'small':
      return { text: 'a string' };
    default:
      throw new Error(`unknown shape ${shape}`);
  }
}

/** As it would come from a file or the network: text that was put together is kept in pieces otherwise. @template Value @param {Value} value @returns {Value} */
const flat = (value) => JSON.parse(JSON.stringify(value));

/** @param {string} shape @param {number} index @param {number} [revision] */
export const makeThing = (shape, index, revision = 0) => definition.create({ id: flat(idOf(index)), spec: specOf(shape, index, revision) });

/** One that one label query in a hundred finds. @param {string} shape @param {number} index */
export const makeLabelled = (shape, index) =>
  definition.create({ id: flat(idOf(index)), labels: { shard: String(index % 100) }, spec: specOf(shape, index, 0) });

/** @param {string} shape @param {number} size */
export const makeThings = (shape, size) => Array.from({ length: size }, (_, index) => makeThing(shape, index));

/** The same random order of 0 … size-1 every time. @param {number} size @returns {number[]} */
export function shuffled(size) {
  const order = Array.from({ length: size }, (_, index) => index);
  let seed = size;
  for (let index = size - 1; index > 0; index--) {
    // A linear congruential generator: any will do that is always the same.
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((seed / 2 ** 32) * (index + 1));
    [order[index], order[other]] = [/** @type {number} */ (order[other]), /** @type {number} */ (order[index])];
  }
  return order;
}
