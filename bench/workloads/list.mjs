// @ts-check
import { check, Measures } from './measure.mjs';
import { idOf, kind, makeLabelled, openState, pointerOf, shuffled } from './things.mjs';

/**
 * Lists everything, one percent by a label, and one percent by the beginning of the id; and everything again after a write,
 * so that nothing remembered helps.
 * @param {{ size: number, times: number }} options
 */
export async function list({ size, times }) {
  const state = openState();
  for (const index of shuffled(size)) await state.create(makeLabelled('fields', index));
  await state.list(kind);
  let byId = 0;
  for (let index = 0; index < size; index++) if (idOf(index).startsWith('thing-77')) byId++;
  const measures = new Measures();
  /** @type {[string, import('steadystate').ListOptions, number, boolean][]} */
  const sorts = [
    ['full', {}, size, false],
    ['by-label', { labelQueries: [{ terms: [{ key: 'shard', op: 'equal', values: ['7'] }] }] }, size / 100, false],
    ['by-id', { idQuery: '^thing-77' }, byId, false],
    ['full-after-a-write', {}, size, true],
    ['by-label-after-a-write', { labelQueries: [{ terms: [{ key: 'shard', op: 'equal', values: ['7'] }] }] }, size / 100, true],
  ];
  for (const [name, options, expected, write] of sorts) {
    let resource = await state.get(pointerOf(1));
    await measures.time(name, times, async () => {
      for (let count = 0; count < times; count++) {
        if (write) resource = await state.update(resource);
        const { items } = await state.list(kind, options);
        check(items.length === expected, `${name} found ${items.length}, not ${expected}`);
      }
    });
  }
  return measures;
}
