// @ts-check
// A stack of files from `create` to ready: engine, store, controllers and disk together. The peer is the bare cost of writing
// the same files as carefully: temporary file, sync, rename.
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime, nodeEnvironment, wrapCore } from 'steadystate';
import { hostOperator, stackDefinition } from 'steadystate/host';
import { openSqliteState } from 'steadystate/sqlite';

const folderPrefix = join(tmpdir(), 'steadystate-bench-');
/** @param {number} count @returns {Record<string, string>} */
const filesOf = (count) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`file-${index}.txt`, `content ${index}\n`.repeat(20)]));

/** @param {string} folder @param {Record<string, string>} files */
async function check(folder, files) {
  for (const [name, content] of Object.entries(files)) {
    if ((await readFile(join(folder, name), 'utf8')) !== content) throw new Error(`${name} is not as declared`);
  }
}

/** @param {number} count @returns {import('../scenario.d.mts').Side<any>} */
function stack(count) {
  const files = filesOf(count);
  return {
    name: `a stack of ${count} files to ready`,
    async prepare() {
      const folder = mkdtempSync(folderPrefix);
      const environment = nodeEnvironment();
      const core = await openSqliteState({ file: join(folder, 'state.db'), environment });
      const runtime = createRuntime({ state: core, environment });
      hostOperator({ environment }).register(runtime);
      const stop = new AbortController();
      const running = runtime.run(stop.signal);
      await runtime.synced();
      return { folder, core, state: wrapCore(core, { environment }), stop, running };
    },
    async run({ folder, state }) {
      // One service that ends at once, so that the files are what takes time.
      const made = await state.create(
        stackDefinition.create({
          id: 'files',
          spec: { directory: join(folder, 'data'), services: { all: { command: ['true'], files, restart: { policy: 'never' } } } },
        }),
      );
      await state.watchFor(
        { namespace: 'default', type: /** @type {string} */ (stackDefinition.statusType), id: 'files' },
        {
          condition: (/** @type {any} */ { spec }) =>
            spec.observedVersion >= made.metadata.version &&
            spec.conditions.some((/** @type {any} */ each) => each.type === 'Ready' && each.status === 'True'),
        },
      );
      await check(join(folder, 'data'), files);
      return count;
    },
    async clean({ folder, core, stop, running }) {
      stop.abort();
      await running;
      await core[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** @param {number} count @returns {import('../scenario.d.mts').Side<any>} */
function bare(count) {
  const files = filesOf(count);
  return {
    name: `${count} files written bare`,
    prepare: () => mkdtempSync(folderPrefix),
    async run(folder) {
      await mkdir(join(folder, 'data'));
      for (const [name, content] of Object.entries(files)) {
        const path = join(folder, 'data', name);
        const handle = await open(`${path}.tmp`, 'wx');
        await handle.writeFile(content);
        await handle.sync();
        await handle.close();
        await rename(`${path}.tmp`, path);
      }
      await check(join(folder, 'data'), files);
      return count;
    },
    clean: (folder) => rmSync(folder, { recursive: true }),
  };
}

export const scenarios = [20, 200].map((count) => ({ name: `apply-files-${count}`, ours: stack(count), peer: bare(count) }));
