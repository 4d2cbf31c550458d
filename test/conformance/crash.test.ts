import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import type { RemoteState } from '../../src/backends/remote/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { MakeStore } from '../../src/testing/index.ts';
import { stateConformance } from '../../src/testing/index.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: true };
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

const killed: MakeStore = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const owner = new Owner(folder);
  return {
    core: await owner.start(),
    async crash() {
      await owner.kill();
      return owner.start();
    },
    async [Symbol.asyncDispose]() {
      await owner.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

describe('SQLite behind a process that is killed', () => {
  const cases = stateConformance(killed, { environment, capabilities, crashes: true, crashRuns: 4, limitMs: 20_000 }).filter(({ name }) =>
    /^crash: |^generated: K4/.test(name),
  );

  test('has cases', () => {
    expect(cases).toHaveLength(2);
  });

  test.each(cases)('$name', ({ run }) => run(), 240_000);
});
