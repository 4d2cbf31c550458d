// @ts-check
// Durable creates: every acknowledgement waits for a sync. The peer is a plain loop over the same SQLite with
// synchronous=FULL, one transaction per create, in the program's own thread.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeResource, nodeEnvironment } from 'steadystate';
import { openSqliteState } from 'steadystate/sqlite';

const kind = { namespace: 'bench', type: 'Things.bench.steadystate.dev' };
const folderPrefix = join(tmpdir(), 'steadystate-bench-');

/** About 512 bytes: 8 fields of some 50 characters, and one string. @param {number} index */
const specOf = (index) => ({
  ...Object.fromEntries(Array.from({ length: 8 }, (_, field) => [`field${field}`, `${index}-${field}-`.padEnd(50, 'x')])),
  note: 'a string',
});
/** @param {number} size @param {string} name */
const makeResources = (size, name = 'thing') =>
  Array.from({ length: size }, (_, index) => makeResource({ metadata: { ...kind, id: `${name}-${index}` }, spec: specOf(index) }));

/** A store writes for days: what its threads compile at first is not measured, nor is how a new file grows. */
const warmUp = makeResources(2_000, 'warm-up');

/**
 * @param {number} writers
 * @param {number} size
 * @returns {import('../scenario.d.mts').Side<any>}
 */
function store(writers, size) {
  const resources = makeResources(size);
  /** @param {import('steadystate').CoreState} state @param {ReturnType<typeof makeResources>} all */
  const createAll = async (state, all) => {
    let next = 0;
    const writer = async () => {
      for (let resource = all[next++]; resource !== undefined; resource = all[next++]) await state.create(resource);
    };
    await Promise.all(Array.from({ length: writers }, writer));
  };
  return {
    name: `sqlite store, ${writers} writer${writers === 1 ? '' : 's'}`,
    async prepare() {
      const folder = mkdtempSync(folderPrefix);
      const state = await openSqliteState({ file: join(folder, 'state.db'), environment: nodeEnvironment() });
      await createAll(state, warmUp);
      return { folder, state };
    },
    async run({ state }) {
      await createAll(state, resources);
      if (state.revision !== warmUp.length + size) throw new Error(`the store is at revision ${state.revision}`);
      return size;
    },
    async clean({ folder, state }) {
      await state[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** @param {number} size @returns {import('../scenario.d.mts').Side<any>} */
function plain(size) {
  const resources = makeResources(size);
  const major = Number(process.versions.node.split('.', 1)[0]);
  const { DatabaseSync } = createRequire(import.meta.url)(major >= 24 ? 'node:sqlite' : '@photostructure/sqlite');
  return {
    name: 'plain SQLite, one writer',
    prepare() {
      const folder = mkdtempSync(folderPrefix);
      const database = new DatabaseSync(join(folder, 'plain.db'));
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE things (id TEXT PRIMARY KEY, record TEXT)');
      const insert = database.prepare('INSERT INTO things (id, record) VALUES (?, ?)');
      /** @param {ReturnType<typeof makeResources>} all */
      const insertAll = (all) => {
        for (const { metadata, spec } of all) insert.run(metadata.id, JSON.stringify([metadata, spec]));
      };
      insertAll(warmUp);
      return { folder, database, insertAll };
    },
    run({ database, insertAll }) {
      insertAll(resources);
      const { count } = database.prepare('SELECT count(*) AS count FROM things').get();
      if (count !== warmUp.length + size) throw new Error(`${count} rows were written`);
      return size;
    },
    clean({ folder, database }) {
      database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  { name: 'durable-create-1', ours: store(1, 2_000), peer: plain(2_000) },
  { name: 'durable-create-64', ours: store(64, 40_000), peer: plain(4_000) },
  { name: 'durable-create-256', ours: store(256, 80_000), peer: plain(4_000) },
];
