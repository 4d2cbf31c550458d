// @ts-check
// An etcd for the benchmarks: KUBEBUILDER_ASSETS, the PATH, or Debian's package, unpacked once into the user's cache.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'steadystate-bench');

/** @type {string | undefined} */
let program;

/** Finds it, or gets it; why it cannot be had, where it cannot. */
export function missingEtcd() {
  program ??= [
    process.env.KUBEBUILDER_ASSETS && join(process.env.KUBEBUILDER_ASSETS, 'etcd'),
    join(cache, 'etcd', 'usr', 'bin', 'etcd'),
  ].find((path) => path && existsSync(path));
  if (program === undefined && spawnSync('etcd', ['--version']).status === 0) program = 'etcd';
  if (program === undefined) {
    mkdirSync(cache, { recursive: true });
    spawnSync('apt-get', ['download', 'etcd-server'], { cwd: cache });
    const archive = readdirSync(cache).find((name) => name.startsWith('etcd-server') && name.endsWith('.deb'));
    if (archive !== undefined && spawnSync('dpkg', ['-x', archive, 'etcd'], { cwd: cache }).status === 0)
      program = join(cache, 'etcd', 'usr', 'bin', 'etcd');
  }
  return program === undefined ? 'there is no etcd: install the package etcd-server, or set KUBEBUILDER_ASSETS' : undefined;
}

/** Starts one on a store of its own. */
export async function startEtcd() {
  const missing = missingEtcd();
  if (program === undefined) throw new Error(missing);
  const folder = mkdtempSync(join(tmpdir(), 'steadystate-bench-etcd-'));
  const [client, peer] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  const args = ['--data-dir', folder, '--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer];
  const child = spawn(
    program,
    [...args, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`, '--logger', 'zap', '--log-level', 'error'],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const ended = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('close', resolve);
  });
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; ; tries++) {
    const healthy = await fetch(`${client}/health`).then(
      async (answer) => (await answer.text()).includes('true'),
      () => false,
    );
    if (healthy) return { url: client, stop };
    if (tries === 300 || child.exitCode !== null) {
      await stop();
      throw new Error('etcd did not start');
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
