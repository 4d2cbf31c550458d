// Owns a store, tells everything on its output before and after it does it, and is killed. A line of input says when to begin:
// {"file", "historyLimit", "round", "bookmarks", "check"}; a second line asks for a close.
//
// Its lines: "found {…}" what the store held at the open; "t type id n finalizers" a write that is tried next (n is - for a
// destroy); "a type id version updated" it was acknowledged; "r type id version n updated" it was read; "b revision bookmark" a watch
// was given; "e …" something that must never be.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { crc32 } from 'node:zlib';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { nodeEnvironment } from '../../dist/environment/index.js';
import { Bytes } from '../../dist/resource/index.js';

const types = ['Apples.example.dev', 'Pears.example.dev'];
const kinds = types.map((type) => ({ namespace: 'default', type }));
const writers = 8;
const idsOfWriter = 5;

/** Said at once: process.stdout would queue what a slow reader has no room for. */
function tell(line) {
  const bytes = Buffer.from(`${line} .\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { file, historyLimit, round, bookmarks, check } = JSON.parse((await lines.next()).value);

const pick = (count) => Math.floor(Math.random() * count);
let counter = 0;

function specOf(n) {
  const pad = 'x'.repeat(pick(20) === 0 ? pick(30_000) : pick(300));
  return { n, pad, sum: crc32(n + pad) };
}

/** A resource in few words; with what is wrong about it. */
function brief(resource) {
  const { metadata, spec } = resource;
  if (spec.sum !== crc32(spec.n + spec.pad)) tell(`e ${metadata.type} ${metadata.id} is half there`);
  return {
    type: metadata.type,
    id: metadata.id,
    version: metadata.version,
    updated: metadata.updated,
    n: spec.n,
    finalizers: metadata.finalizers,
  };
}

try {
  const state = await openSqliteState({ file, environment: nodeEnvironment(), historyLimit });
  const items = [];
  for (const kind of kinds) {
    for (const resource of (await state.list(kind)).items) {
      items.push({ ...brief(resource), notes: await state.finalizerNotes(resource.metadata) });
    }
  }
  const resumed = [];
  for (const { revision, bookmark } of bookmarks) resumed.push({ revision, ...(await resume(state, revision, bookmark)) });
  const findings = check ? (await state.admin.check()).findings : [];
  tell(`found ${JSON.stringify({ revision: state.revision, storeId: state.storeId, items, resumed, findings })}`);
  void watch(state);
  void read(state);
  const present = new Map(items.map((item) => [`${item.type}/${item.id}`, item]));
  for (let writer = 0; writer < writers; writer++) void write(state, writer, present);
  await lines.next();
  await state[Symbol.asyncDispose]();
  process.exit();
} catch (error) {
  tell(`e ${JSON.stringify(error.stack)}`);
}

/** Everything since a bookmark, up to now. */
async function resume(state, from, bookmark) {
  const events = [];
  let watched;
  try {
    watched = await state.watchKinds(kinds, { startFromBookmark: Bytes.from(Buffer.from(bookmark, 'base64')), strict: true });
  } catch (error) {
    if (error.code === 'InvalidBookmark') return { expired: true, events };
    throw error;
  }
  if (from === state.revision) return { events };
  for await (const batch of watched) {
    for (const event of batch) {
      if (event.type === 'errored') throw event.error;
      if (event.resource === undefined) continue;
      events.push({ type: event.type, revision: event.revision, resource: brief(event.resource), old: event.old?.metadata.version });
      if (event.revision >= state.revision) return { events };
    }
  }
  return { events };
}

/** What was read must survive too. */
async function read(state) {
  try {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const [type, id] = [types[pick(2)], `w${pick(writers)}-${pick(idsOfWriter)}`];
      const found = await state.get({ namespace: 'default', type, id }).catch((error) => {
        if (error.code !== 'NotFound') throw error;
      });
      if (found === undefined) tell(`r ${type} ${id} -`);
      else tell(`r ${type} ${id} ${found.metadata.version} ${found.spec.n} ${found.metadata.updated}`);
    }
  } catch (error) {
    if (error.code !== 'Closed') tell(`e ${JSON.stringify(error.stack)}`);
  }
}

async function watch(state) {
  try {
    for await (const batch of await state.watchKinds(kinds, { bootstrapBookmark: true })) {
      const { revision, bookmark } = batch.at(-1);
      if (bookmark !== undefined && revision !== undefined && pick(2) === 0) tell(`b ${revision} ${bookmark.toBase64()}`);
    }
  } catch (error) {
    if (error.code !== 'Closed') tell(`e ${JSON.stringify(error.stack)}`);
  }
}

/** Writes ids of its own, one at a time or all together. */
async function write(state, writer, present) {
  try {
    for (;;) {
      const group = Array.from({ length: pick(3) === 0 ? idsOfWriter : 1 }, (_, index) => (index + pick(idsOfWriter)) % idsOfWriter);
      await Promise.all([...new Set(group)].map((index) => writeOne(state, types[(writer + index) % 2], `w${writer}-${index}`, present)));
    }
  } catch (error) {
    if (error.code !== 'Closed') tell(`e ${JSON.stringify(error.stack)}`);
  }
}

async function writeOne(state, type, id, present) {
  const key = `${type}/${id}`;
  const pointer = { namespace: 'default', type, id };
  const before = present.get(key);
  const n = `${round}.${counter++}`;
  if (before !== undefined && before.finalizers.length === 0 && pick(3) === 0) {
    tell(`t ${type} ${id} -`);
    await state.destroy(pointer);
    tell(`a ${type} ${id} -`);
    present.delete(key);
    return;
  }
  const held = new Set(before?.finalizers ?? []);
  const finalizer = `f${pick(3)}`;
  if (!held.delete(finalizer) && pick(2) === 0) held.add(finalizer);
  const finalizers = [...held];
  const next = { metadata: { ...pointer, finalizers, version: before?.version }, spec: specOf(n) };
  tell(`t ${type} ${id} ${n} ${finalizers.join(',')}`);
  const written = await (before === undefined ? state.create(next) : state.update(next));
  tell(`a ${type} ${id} ${written.metadata.version} ${written.metadata.updated}`);
  present.set(key, brief(written));
}
