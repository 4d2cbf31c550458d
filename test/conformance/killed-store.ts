import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { RemoteState } from '../../src/backends/remote/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { MakeStore } from '../../src/testing/index.ts';

export const environment = nodeEnvironment();
export const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: true };
const built = (file: string): string => JSON.stringify(new URL(`../../dist/${file}`, import.meta.url).href);

/** A process that owns a store in a file and serves it, until it is killed. */
const program = (folder: string): string => `
  import { nodeEnvironment } from ${built('index.js')};
  import { openSqliteState } from ${built('backends/sqlite/index.js')};
  import { serveState } from ${built('server/index.js')};
  const environment = nodeEnvironment();
  const state = await openSqliteState({ file: ${JSON.stringify(join(folder, 'state.db'))}, environment });
  const control = { version: '0', pid: process.pid, store: 'sqlite:', storeId: state.storeId };
  await serveState({ state, environment, listen: ['unix:api.sock'], directory: ${JSON.stringify(folder)}, control });
  console.log('serving');
`;

class Owner {
  readonly #folder: string;
  #child: ChildProcess | undefined;
  #remote: RemoteState | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<RemoteState> {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program(this.#folder)], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    for await (const line of createInterface({ input: child.stdout })) if (line === 'serving') break;
    this.#remote = await openRemoteState({ address: `unix:${join(this.#folder, 'api.sock')}`, environment });
    return this.#remote;
  }

  async kill(): Promise<void> {
    const child = this.#child as ChildProcess;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
    await this.#remote?.[Symbol.asyncDispose]();
  }
}

/** A SQLite store behind a process that is killed, and started again on what it left. */
export const killed: MakeStore = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const owner = new Owner(folder);
  const crash = async () => {
    await owner.kill();
    return owner.start();
  };
  return {
    core: await owner.start(),
    crash,
    reopen: crash,
    async [Symbol.asyncDispose]() {
      await owner.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
