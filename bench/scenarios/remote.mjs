// @ts-check
// Servers under one client, which is written in Go (bench/peers/remote.go): ours; the original's on grpc-go; and grpc-js with
// next to nothing behind it. Every round has a fresh server.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goProgram, missingGo, runGo } from '../peers/peer.mjs';

/** @param {string} path */
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const servers = {
  ours: { name: 'our server', command: process.execPath, args: [here('../workloads/serve.mjs')] },
  plain: { name: 'plain grpc-js', command: process.execPath, args: [here('../peers/plain-grpc.mjs')] },
  go: { name: 'COSI on grpc-go', command: goProgram, args: ['serve', '--socket'] },
};

/** CPU time and memory of a process, where the system tells them. @param {number} pid */
function usage(pid) {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return undefined;
  const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  // In hundredths of a second, and in pages of 4 KiB.
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, bytes: Number(fields[21]) * 4096 };
}

/** @type {Readonly<Record<string, Readonly<Record<string, number>>>>} */
const warmUp = {
  'remote-unary': { callers: 64, operations: 10_000 },
  'remote-watch': { watchers: 1, events: 10_000, rate: 0 },
};

/**
 * @param {keyof typeof servers} which
 * @param {string} workload
 * @param {Readonly<Record<string, number>>} options
 * @returns {import('../scenario.d.mts').Side<any>}
 */
const side = (which, workload, options) => ({
  name: servers[which].name,
  async prepare() {
    const { command, args } = servers[which];
    const folder = await mkdtemp(join(tmpdir(), 'bench-'));
    const socket = join(folder, 's');
    const child = spawn(command, [...args, socket], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    // Servers run for long: what is measured is one that has done the same for a while.
    await runGo(workload, { address: `unix:${socket}`, ...options, ...warmUp[workload] });
    return { child, folder, socket };
  },
  async run({ child, socket }) {
    const before = usage(child.pid);
    const { parts } = await runGo(workload, { address: `unix:${socket}`, ...options });
    const after = usage(child.pid);
    if (before === undefined || after === undefined) return { parts };
    const operations = Object.values(parts).reduce(
      (sum, part) => sum + ('operations' in part && part.operations > 1 ? part.operations : 0),
      0,
    );
    const more = { 'by CPU of the server': { operations, elapsedMs: after.cpuMs - before.cpuMs } };
    const { watchers = 1 } = options;
    const memory = { 'memory of the server per watcher': { bytes: Math.max(1, (after.bytes - before.bytes) / watchers) } };
    return { parts: { ...parts, ...more, ...(watchers > 1 && memory) } };
  },
  async clean({ child, folder }) {
    child.stdin.end();
    await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
  },
});

/**
 * @param {string} name
 * @param {'plain' | 'go'} peer
 * @param {string} workload
 * @param {Readonly<Record<string, number>>} options
 * @returns {import('../scenario.d.mts').Scenario}
 */
const against = (name, peer, workload, options) => ({
  name: `${name}-${peer === 'go' ? 'grpc-go' : 'grpc-js'}`,
  ours: side('ours', workload, options),
  peer: side(peer, workload, options),
  missing: missingGo,
  // Each server is warmed up by itself.
  warmUp: false,
});

const callers = /** @type {const} */ ([
  [1, 5_000],
  [64, 30_000],
  [1_000, 30_000],
]);

/** @type {import('../scenario.d.mts').Scenario[]} */
export const scenarios = [
  ...callers.flatMap(([count, operations]) => [
    against(`remote-unary-${count}`, 'plain', 'remote-unary', { callers: count, operations }),
    against(`remote-unary-${count}`, 'go', 'remote-unary', { callers: count, operations }),
  ]),
  against('remote-watch-1', 'go', 'remote-watch', { watchers: 1, events: 20_000 }),
  against('remote-watch-1-updates', 'go', 'remote-watch', { watchers: 1, events: 20_000, resources: 1_000 }),
  { ...against('remote-watch-1-100k', 'go', 'remote-watch', { watchers: 1, events: 100_000 }), full: true },
  { ...against('remote-watch-1-100k-updates', 'go', 'remote-watch', { watchers: 1, events: 100_000, resources: 1_000 }), full: true },
  against('remote-watch-1000', 'go', 'remote-watch', { watchers: 1_000, events: 1_000, rate: 1_000 }),
];
