// @ts-check
// Durable writes beside the original's store in bbolt and beside etcd, opening a large store, and reading while the disk syncs.
// wait-p50 and wait-p99 are what one write or read waited, as its reciprocal: more is better there too.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { missingEtcd, startEtcd } from '../peers/etcd.mjs';
import { missingGo, runGo, runWorkload } from '../peers/peer.mjs';

const main = fileURLToPath(new URL('../workloads/main.mjs', import.meta.url));
const nodeArgs = ['--expose-gc', '--max-old-space-size=8192', main];
/** @param {string} workload @param {Readonly<Record<string, string | number | boolean>>} options */
const runOurs = (workload, options) => runWorkload(process.execPath, [...nodeArgs, workload], options);

/** How many resources each side makes: each about a second's work on a common disk. */
const crowds = /** @type {const} */ ([
  { writers: 1, ours: 2_000, bolt: 1_000, etcd: 1_000 },
  { writers: 64, ours: 40_000, bolt: 1_000, etcd: 5_000 },
  { writers: 256, ours: 80_000, bolt: 1_000, etcd: 10_000 },
]);

/** @returns {import('../scenario.d.mts').Scenario[]} */
const creates = () =>
  crowds.flatMap(({ writers, ours, bolt, etcd }) => {
    const side = { name: 'sqlite store', run: () => runOurs('durable-create', { writers, size: ours }) };
    return [
      {
        name: `durable-create-${writers}-beside-bbolt`,
        ours: side,
        peer: { name: 'COSI in bbolt', run: () => runGo('durable-create', { writers, size: bolt }) },
        missing: missingGo,
      },
      {
        name: `durable-create-${writers}-beside-etcd`,
        ours: side,
        peer: {
          name: 'etcd',
          prepare: startEtcd,
          run: ({ url }) => runGo('durable-create', { writers, size: etcd, etcd: url }),
          clean: ({ stop }) => stop(),
        },
        missing: () => missingGo() ?? missingEtcd(),
      },
    ];
  });

/**
 * @param {string} name
 * @param {number} size
 * @param {boolean} killed
 * @param {Partial<import('../scenario.d.mts').Scenario>} [how]
 * @returns {import('../scenario.d.mts').Scenario}
 */
function opening(name, size, killed, how = {}) {
  /** @type {string | undefined} */
  let folder;
  const folderOf = () => {
    if (folder !== undefined) return folder;
    const made = mkdtempSync(join(tmpdir(), 'steadystate-bench-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    folder = made;
    return made;
  };
  const filled = new Set();
  const fill = async (/** @type {string} */ file) => {
    const child = spawn(process.execPath, [...nodeArgs, 'durable-fill', `--file=${file}`, `--size=${size}`, `--killed=${killed}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code, signal] = await once(child, 'close');
    if (killed ? signal !== 'SIGKILL' : code !== 0) throw new Error(`the store was not filled: ${signal ?? code}`);
  };
  return {
    name,
    ours: {
      name: killed ? 'sqlite store, killed' : 'sqlite store',
      async prepare() {
        const made = join(folderOf(), 'made.db');
        if (!filled.has(made)) await fill(made);
        filled.add(made);
        if (!killed) return made;
        // To open a store that was killed mends it: each round gets one as it was left, with what lies beside it.
        const file = join(folderOf(), 'state.db');
        for (const beside of ['', '-wal', '-holder', '-reserve'])
          copyFileSync(`${made}${beside}`, `${file}${beside}`, constants.COPYFILE_FICLONE);
        return file;
      },
      run: (/** @type {any} */ file) => runOurs('durable-open', { file, size }),
    },
    peer: {
      name: 'COSI in bbolt',
      async prepare() {
        const file = join(folderOf(), 'peer.db');
        // The first time it is filled; that one is not measured.
        if (!filled.has(file)) await runGo('durable-open', { file, size });
        filled.add(file);
        return file;
      },
      run: (/** @type {any} */ file) => runGo('durable-open', { file, size }),
    },
    missing: missingGo,
    ...how,
  };
}

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  ...creates(),
  opening('open-100k', 100_000, false),
  opening('open-100k-killed', 100_000, true),
  opening('open-1m', 1_000_000, false, { full: true, rounds: 3, warmUp: false }),
  opening('open-1m-killed', 1_000_000, true, { full: true, rounds: 3, warmUp: false }),
  ...[1, 64, 256].map((writers) => ({
    name: `reads-beside-${writers}-writers`,
    ours: { name: `beside ${writers} durable writers`, run: () => runOurs('reads-beside-writes', { writers, size: 20_000 }) },
    peer: { name: 'beside none', run: () => runOurs('reads-beside-writes', { writers: 0, size: 20_000 }) },
  })),
];
