import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import type { Environment } from '../../src/environment/index.ts';
import type { StackInput } from '../../src/host/index.ts';
import type { Host, Store } from './support.ts';
import { alive, eventually, everything, startHost } from './support.ts';

/** Appends its pid to a file, and stays; ready once it is told. */
const tells = (name: string, more: Partial<StackInput['services'][string]> = {}): StackInput['services'][string] => ({
  command: ['sh', '-c', `echo $$ >> ${name}.pids; exec sleep 1000`],
  ready: { command: ['test', '-s', `${name}.pids`], intervalMs: 20 },
  ...more,
});

const stack: StackInput = {
  directory: 'data',
  services: {
    a: tells('a'),
    b: tells('b', { dependsOn: ['a'] }),
    c: tells('c', { dependsOn: ['b'] }),
    d: tells('d', { dependsOn: ['c'] }),
  },
};
const names = ['a', 'b', 'c', 'd'];

interface Program extends AsyncDisposable {
  /** Resolves when it has told this. */
  until(line: string): Promise<void>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
}

function startProgram(folder: string, declared: StackInput): Program {
  const file = join(folder, 'stack.json');
  writeFileSync(file, JSON.stringify(declared));
  const child = spawn(process.execPath, [join(import.meta.dirname, 'operator-program.mjs'), join(folder, 'state.db'), folder, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => {
    told += chunk;
  });
  const until = async (line: string): Promise<void> => {
    while (!told.split('\n').includes(line)) {
      const ended = exited.then(() => Promise.reject(new Error(`the program ended before it told "${line}"`)));
      await Promise.race([once(child.stdout, 'data'), ended]);
    }
  };
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { until, kill, [Symbol.asyncDispose]: kill };
}

/** The host of this test: a store in the file that the killed program left. */
function after(folder: string): Promise<Host> {
  const store: Store = { open: (environment: Environment) => openSqliteState({ file: join(folder, 'state.db'), environment }) };
  return startHost({ store });
}

const pidsOf = (folder: string, name: string): readonly number[] => {
  const file = join(folder, 'data', `${name}.pids`);
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
};

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'crash-')));
  try {
    await work(folder);
  } finally {
    for (const name of names) for (const pid of pidsOf(folder, name)) if (alive(pid)) process.kill(-pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

test('after kill -9 of the operator the next one adopts: the same pids, none doubled', async () => {
  await inFolder(async (folder) => {
    await using program = startProgram(folder, stack);
    await program.until('ready');
    await program.kill();
    const before = names.map((name) => pidsOf(folder, name));
    expect(before.flat().every(alive)).toBe(true);
    await using host = await after(folder);
    await host.untilReady('s');
    expect(names.map((name) => pidsOf(folder, name))).toEqual(before);
    for (const [index, name] of names.entries())
      expect(await host.status(`s/${name}`)).toMatchObject({ pid: before[index]?.[0], restarts: 0, ready: true });
    // Adopted ones are seen to end, whoever reaps them, and are taken down like any other.
    process.kill(before[1]?.[0] as number, 'SIGKILL');
    const again = await host.until('s/b', (status) => status.ready && status.pid !== before[1]?.[0]);
    expect(again).toMatchObject({ restarts: 1, lastExit: { text: 'unknown (adopted)' } });
    await host.remove('s');
    for (const name of names) for (const pid of pidsOf(folder, name)) expect(isRunning(pid)).toBe(false);
    expect(await everything(host)).toEqual([]);
  });
});

test('a stack whose processes died while nobody looked is not taken for ready', async () => {
  await inFolder(async (folder) => {
    await using program = startProgram(folder, stack);
    await program.until('ready');
    await program.kill();
    const pids = names.map((name) => pidsOf(folder, name)[0] as number);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await using host = await after(folder);
    // The first look already tells the truth.
    await host.untilReady('s');
    for (const [index, name] of names.entries()) {
      const status = await host.status(`s/${name}`);
      expect(status).toMatchObject({ ready: true });
      expect(status.pid).not.toBe(pids[index]);
    }
    await host.remove('s');
  });
});

// Cut at many moments of bringing a stack up: whatever was on record is adopted, whatever was not never ran.
test.each([0, 20, 40, 70, 110, 160])('a kill -9 of the operator %i ms into its work never doubles a process', async (delayMs) => {
  await inFolder(async (folder) => {
    await using program = startProgram(folder, stack);
    await program.until('up');
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await program.kill();
    await using host = await after(folder);
    await host.untilReady('s');
    await eventually(host, 'every process to have told its pid', () => names.every((name) => pidsOf(folder, name).length > 0));
    for (const name of names) {
      const pids = pidsOf(folder, name);
      expect(pids, `runs of ${name}`).toHaveLength(1);
      expect((await host.status(`s/${name}`)).pid).toBe(pids[0]);
    }
    await host.remove('s');
    for (const name of names) for (const pid of pidsOf(folder, name)) expect(isRunning(pid)).toBe(false);
  });
});

/** Alive, and not a zombie that nobody reaps. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
