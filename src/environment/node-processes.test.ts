import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { nodeProcesses } from './node-processes.ts';
import { OpenThings } from './open-things.ts';
import type { GatedProcess, SpawnRequest } from './processes.ts';

const open = new OpenThings();
const processes = nodeProcesses(open);
const PATH = process.env.PATH ?? '';
let folder: string;
let runs = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'processes-'));
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(() => {
  expect(open.counts()).toEqual({});
});

function request(command: SpawnRequest['command'], environment: Record<string, string> = { PATH }): SpawnRequest {
  return { command, directory: folder, environment, outputFile: join(folder, `output-${++runs}`) };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error('waited in vain');
    await sleep(10);
  }
}

async function killed(child: GatedProcess): Promise<void> {
  await processes.signalGroup(child.identity, 'SIGKILL');
  await child.exited;
}

describe('a gated start', () => {
  test('runs nothing before the release, then becomes the program itself', async () => {
    const asked = request(['sh', '-c', 'echo "$$ $GREETING"; pwd; echo problem >&2; exit 3'], { PATH, GREETING: 'hello "$x"' });
    const child = await processes.spawnGated(asked);
    expect(open.counts()).toEqual({ child: 1 });
    await sleep(50);
    expect(await readFile(asked.outputFile, 'utf8')).toBe('');
    expect(await processes.inspect(child.identity)).toBe('running');
    expect(await processes.identify(child.identity.pid)).toEqual(child.identity);
    await child.release();
    expect(await child.exited).toEqual({ code: 3 });
    expect(await readFile(asked.outputFile, 'utf8')).toBe(`${child.identity.pid} hello "$x"\n${folder}\nproblem\n`);
    expect(await processes.inspect(child.identity)).toBe('gone');
  });

  test('ends with 75 when it is abandoned', async () => {
    const asked = request(['sh', '-c', 'echo started']);
    const child = await processes.spawnGated(asked);
    await child.abandon();
    expect(await child.exited).toEqual({ code: 75 });
    expect(await readFile(asked.outputFile, 'utf8')).toBe('');
  });

  test('ends with 75 when the starter dies before the release', async () => {
    const program = `
      import { nodeProcesses } from ${JSON.stringify(new URL('../../dist/environment/node-processes.js', import.meta.url).href)};
      const open = { track: () => ({ [Symbol.dispose]() {} }), counts: () => ({}) };
      const child = await nodeProcesses(open).spawnGated(${JSON.stringify(request(['sh', '-c', 'echo started; sleep 60']))});
      console.log(JSON.stringify(child.identity));
      process.kill(process.pid, 'SIGKILL');`;
    const starter = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    for await (const chunk of starter.stdout) output += chunk;
    const identity = JSON.parse(output);
    await until(async () => (await processes.inspect(identity)) === 'gone');
    expect(await readFile(join(folder, `output-${runs}`), 'utf8')).toBe('');
  });

  test('closes the gate behind it', async () => {
    const asked = request(['sh', '-c', 'if [ -e /dev/fd/3 ]; then echo open; else echo closed; fi']);
    const child = await processes.spawnGated(asked);
    await child.release();
    expect(await child.exited).toEqual({ code: 0 });
    expect(await readFile(asked.outputFile, 'utf8')).toBe('closed\n');
  });

  test('hands on every variable, also those that a shell takes for itself', async () => {
    const environment = { PATH, '-i': 'x', '--help': '', 'A-B.C': '1 $x', 'ä ö': 'ü', IFS: ':', PPID: '5', EMPTY: '', LINES: 'a\nb' };
    const asked = request([process.execPath, '-e', 'console.log(JSON.stringify(process.env))'], environment);
    const child = await processes.spawnGated(asked);
    await child.release();
    expect(await child.exited).toEqual({ code: 0 });
    const { PWD, ...rest } = JSON.parse(await readFile(asked.outputFile, 'utf8'));
    expect(rest).toMatchObject(environment);
    expect([undefined, folder]).toContain(PWD);
  });

  test('appends to the output', async () => {
    const asked = request(['echo', 'two']);
    await writeFile(asked.outputFile, 'one\n');
    const child = await processes.spawnGated(asked);
    await child.release();
    await child.exited;
    expect(await readFile(asked.outputFile, 'utf8')).toBe('one\ntwo\n');
  });

  test('tells a missing program by 127 and one that may not run by 126', async () => {
    await writeFile(join(folder, 'plain'), 'text');
    for (const [program, code] of [
      ['no-such-program', 127],
      ['./plain', 126],
    ] as const) {
      const child = await processes.spawnGated(request([program]));
      await child.release();
      expect(await child.exited).toEqual({ code });
    }
  });

  test('rejects when the folder is missing, naming it', async () => {
    const directory = join(folder, 'missing');
    await expect(processes.spawnGated({ ...request(['true']), directory })).rejects.toMatchObject({
      code: 'ENOENT',
      message: expect.stringContaining(directory),
    });
    await expect(processes.spawnGated({ ...request(['true']), outputFile: join(directory, 'out') })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  test('hears a signal although it was stopped', async () => {
    const asked = request(['sh', '-c', 'trap "echo bye; exit 3" TERM; echo up; while :; do sleep 0.05; done']);
    const child = await processes.spawnGated(asked);
    await child.release();
    await vi.waitFor(async () => expect(await readFile(asked.outputFile, 'utf8')).toBe('up\n'), { timeout: 20_000 });
    process.kill(-child.identity.pid, 'SIGSTOP');
    expect(await processes.signalGroup(child.identity, 'SIGTERM')).toBe(true);
    expect(await child.exited).toEqual({ code: 3 });
    expect(await readFile(asked.outputFile, 'utf8')).toMatch(/bye\n$/);
  });

  test('tells the signal that ended it', async () => {
    const child = await processes.spawnGated(request(['sleep', '60']));
    await child.release();
    expect(await processes.signalGroup(child.identity, 'SIGTERM')).toBe(true);
    expect(await child.exited).toEqual({ signal: 'SIGTERM' });
    expect(await processes.signalGroup(child.identity, 'SIGTERM')).toBe(false);
  });
});

describe('an identity', () => {
  test('is one process of one boot, never another with its pid', async () => {
    const child = await processes.spawnGated(request(['sleep', '60']));
    await child.release();
    const { identity } = child;
    expect(identity.bootId).toBe(await processes.bootId());
    for (const other of [
      { ...identity, startTime: `${identity.startTime}1` },
      { ...identity, bootId: 'another' },
    ]) {
      expect(await processes.inspect(other)).toBe('gone');
      expect(await processes.group(other)).toEqual([]);
      expect(await processes.signalGroup(other, 'SIGKILL')).toBe(false);
    }
    expect(await processes.inspect(identity)).toBe('running');
    await killed(child);
    expect(await processes.identify(identity.pid)).toBeUndefined();
  });

  test('of a zombie is gone', async () => {
    // The shell's child ends, and the program that the shell becomes never reaps it.
    const asked = request(['sh', '-c', 'true & echo $!; exec sleep 60']);
    const child = await processes.spawnGated(asked);
    await child.release();
    let pid = 0;
    await until(async () => (pid = Number(await readFile(asked.outputFile, 'utf8'))) > 0);
    await until(async () => (await processes.identify(pid)) === undefined);
    expect(await processes.group(child.identity)).toEqual([child.identity.pid]);
    await killed(child);
  });
});

describe('a group', () => {
  test('outlives its leader, and is signalled as a whole', async () => {
    const asked = request(['sh', '-c', 'sleep 60 & sleep 60 & echo ready']);
    const child = await processes.spawnGated(asked);
    await child.release();
    expect(await child.exited).toEqual({ code: 0 });
    expect(await processes.inspect(child.identity)).toBe('gone');
    expect(await processes.group(child.identity)).toHaveLength(2);
    expect(await processes.signalGroup(child.identity, 'SIGKILL')).toBe(true);
    await until(async () => (await processes.group(child.identity)).length === 0);
  });
});

describe('run', () => {
  const run = (command: readonly [string, ...string[]], limitMs = 10_000, signal?: AbortSignal) =>
    processes.run({ command, directory: folder, environment: { PATH }, limitMs, ...(signal && { signal }) });

  test('answers exit and output', async () => {
    expect(await run(['sh', '-c', 'echo out; echo err >&2; exit 4'])).toEqual({
      code: 4,
      output: expect.stringMatching(/^(out\nerr|err\nout)\n$/),
      timedOut: false,
    });
  });

  test('cuts the output', async () => {
    expect((await run(['sh', '-c', 'yes | head -c 300000'])).output).toHaveLength(64 * 1024);
  });

  test('kills the whole group at the limit', async () => {
    const marker = `60.${process.pid}`;
    const start = performance.now();
    expect(await run(['sh', '-c', `sleep ${marker} & sleep ${marker}`], 100)).toMatchObject({ signal: 'SIGKILL', timedOut: true });
    expect(performance.now() - start).toBeLessThan(5000);
    expect((await run(['sh', '-c', `pgrep -f "sleep ${marker}$" | grep -v $$`])).output).toBe('');
  });

  test('does not wait for what left its group', async () => {
    const start = performance.now();
    const { output, code } = await run(['sh', '-c', 'setsid sleep 5 & sleep 0.2; echo done']);
    expect({ output, code }).toEqual({ output: 'done\n', code: 0 });
    expect(performance.now() - start).toBeLessThan(3000);
  });

  test('ends with its signal', async () => {
    const reason = new Error('stop');
    const abort = new AbortController();
    const running = run(['sleep', '60'], 60_000, abort.signal);
    setTimeout(() => abort.abort(reason), 50);
    await expect(running).rejects.toBe(reason);
    await expect(run(['true'], 1000, abort.signal)).rejects.toBe(reason);
  });

  test('rejects what cannot start', async () => {
    await expect(run(['no-such-program'])).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('diagnose', () => {
  const diagnose = (...command: [string, ...string[]]) => processes.diagnose(request(command));

  test('finds nothing wrong with what can start', async () => {
    expect(await diagnose('sh')).toBeUndefined();
    expect(await diagnose(process.execPath)).toBeUndefined();
  });

  test('tells folder, program, execute bit and interpreter apart', async () => {
    await mkdir(join(folder, 'folder'));
    await writeFile(join(folder, 'script'), '#!/no/such/interpreter -x\n');
    await writeFile(join(folder, 'by-env'), '#!/usr/bin/env -S no-such-interpreter --flag\n');
    expect(await diagnose('./script')).toMatch(/script may not be executed: .*chmod \+x/);
    await chmod(join(folder, 'script'), 0o755);
    await chmod(join(folder, 'by-env'), 0o755);
    expect(await diagnose('./script')).toMatch(/^the interpreter \/no\/such\/interpreter of .*script does not exist$/);
    expect(await diagnose('./by-env')).toMatch(/^the interpreter no-such-interpreter of .*by-env was not found in PATH/);
    expect(await diagnose('./folder')).toMatch(/is a folder, not a program/);
    await writeFile(join(folder, 'windows'), '#!/bin/sh\r\n', { mode: 0o755 });
    await writeFile(join(folder, 'windows-env'), '#!/usr/bin/env sh\r\n', { mode: 0o755 });
    for (const name of ['./windows', './windows-env'])
      expect(await diagnose(name)).toMatch(/ends as on Windows; save it with plain line ends$/);
    expect(await diagnose('windows')).toMatch(/was not found in PATH .*; write \.\/windows for the one in /);
    expect(await diagnose('./nothing')).toBe('the program ./nothing does not exist');
    expect(await diagnose('no-such-program')).toMatch(/^the program no-such-program was not found in PATH/);
    expect(await processes.diagnose({ ...request(['sh']), directory: join(folder, 'missing') })).toMatch(
      /the folder .*missing does not exist/,
    );
    expect(await processes.diagnose({ ...request(['sh']), directory: join(folder, 'script') })).toMatch(/is not a folder/);
  });
});

test('only what a child may need is inherited', () => {
  expect(processes.inherited().PATH).toBe(process.env.PATH);
  expect(Object.keys(processes.inherited())).not.toContain('NODE_OPTIONS');
  expect(Object.keys(processes.inherited()).filter((name) => name.startsWith('VITEST'))).toEqual([]);
});
