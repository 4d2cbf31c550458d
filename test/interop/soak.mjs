// Our client's half of the soak: it writes and watches the same kinds as a client of Go, and tells what it saw.

import { openRemoteState } from '../../dist/backends/remote/index.js';
import { nodeEnvironment } from '../../dist/environment/index.js';
import { seeded } from '../server/cutting-proxy.mjs';

const environment = nodeEnvironment();
/** What is answered to one of several writers of the same ids, and to who would drop the protobuf form of another's spec. */
const expected = new Set(['Conflict', 'NotFound', 'Invalid']);

async function patiently(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (error.code !== 'Unavailable') throw error;
      await environment.sleep(20);
    }
  }
}

/** Random writes to `ids` ids of each kind. */
export async function write(address, kinds, ids, operations, seed) {
  const state = await patiently(() => openRemoteState({ address, environment }));
  const random = seeded(seed);
  const pick = (items) => items[Math.floor(random() * items.length)];
  for (let operation = 0; operation < operations; operation++) {
    const pointer = { ...pick(kinds), id: `id-${Math.floor(random() * ids)}` };
    const what = random();
    try {
      if (what < 0.4) await state.create({ metadata: pointer, spec: { value: operation } });
      else if (what < 0.8) {
        const { metadata } = await state.get(pointer);
        await state.update({ metadata: { ...metadata, labels: { by: 'ours' } }, spec: { value: operation } });
      } else await state.destroy(pointer);
    } catch (error) {
      if (!expected.has(error.code)) throw error;
    }
  }
  await state[Symbol.asyncDispose]();
}

/** Follows one kind until the resource `end` is there; gives the versions of all others by id. */
export async function follow(address, kind) {
  const state = await patiently(() => openRemoteState({ address, environment }));
  const view = new Map();
  for (;;) {
    view.clear();
    const watch = await patiently(() => state.watchKindAggregated(kind, { bootstrapContents: true }));
    let last = 0;
    for await (const batch of watch) {
      for (const event of batch) {
        // A watch that was cut before it had a place to go on from says so, and is begun again.
        if (event.type === 'errored' && event.error.code !== 'Unavailable') throw event.error;
        if (!('resource' in event)) continue;
        if (event.bookmark !== undefined) {
          if (event.revision < last) throw new Error(`revision ${event.revision} came after ${last}`);
          last = event.revision;
        }
        const { id, version } = event.resource.metadata;
        if (event.type === 'destroyed') view.delete(id);
        else if (id !== 'end') view.set(id, version);
        else {
          await watch[Symbol.asyncDispose]();
          await state[Symbol.asyncDispose]();
          return Object.fromEntries(view);
        }
      }
    }
  }
}
