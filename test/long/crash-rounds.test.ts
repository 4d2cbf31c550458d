import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

/** Kills in each of the four. */
const rounds = Number(process.env.STEADYSTATE_ROUNDS ?? 25);
const program = fileURLToPath(new URL('./crash-program.mjs', import.meta.url));

let folder: string;
let running: ChildProcess | undefined;

afterEach(() => {
  running?.kill('SIGKILL');
  for (const pid of living()) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Each start of a service appends its pid to a file of its own. */
const service = (name: string, mark = '', after: readonly string[] = []) => ({
  command: [
    process.execPath,
    '-e',
    `require('fs').appendFileSync('starts-${name}', process.pid + '\\n'); console.log('up'); setInterval(() => {}, 1000); /* ${folder} ${mark} */`,
  ],
  dependsOn: after,
  files: { [`${name}.txt`]: `declared by ${name}${mark}` },
  ready: { log: 'up' },
});

function write(name: string, services: Record<string, unknown>): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ directory: 'data', services }));
  return path;
}

/** Runs the operator to its end, or kills it some time after it began to write. Answers whether it got to its end. */
function operate(args: readonly string[], killAfterMs?: number): Promise<boolean> {
  const child = spawn(process.execPath, [program, join(folder, 'state.db'), folder, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  running = child;
  let done = false;
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === 'begun' && killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    if (line === 'done') done = true;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      killAfterMs === undefined && code !== 0 ? reject(new Error(`the operator ended with ${code}`)) : resolve(done),
    );
  });
}

/** Living processes of this round's services. */
function living(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`/* ${folder} `) &&
          !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

function starts(name: string): readonly number[] {
  const path = join(folder, 'data', `starts-${name}`);
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : [];
}

/** The newest start of a service is the one that lives. */
function expectLiving(names: readonly string[]): void {
  expect([...living()].sort()).toEqual(names.map((name) => starts(name).at(-1)).sort());
}

const make = (): void => {
  folder = mkdtempSync(join(tmpdir(), 'ss-crash-'));
};

describe.runIf(process.platform === 'linux')(`${rounds} kills of the operator in each`, () => {
  // The moments are spread evenly over the time that an undisturbed run takes, and a little beyond.
  const moments = Array.from({ length: rounds }, (_, index) => Math.round((index / rounds) * 500));

  test.each(moments)('create, killed after %i ms', async (moment) => {
    make();
    const spec = write('spec.json', { a: service('a'), b: service('b', '', ['a']) });
    await operate(['apply', spec], moment);
    await operate(['apply', spec]);
    expectLiving(['a', 'b']);
    for (const name of ['a', 'b']) expect(starts(name).length).toBeLessThanOrEqual(2);
    expect(readFileSync(join(folder, 'data', 'a.txt'), 'utf8')).toBe('declared by a');
  });

  test.each(moments)('update, killed after %i ms', async (moment) => {
    make();
    await operate(['apply', write('first.json', { a: service('a'), b: service('b') })]);
    const [untouched] = starts('a');
    const second = write('second.json', { a: service('a'), b: service('b', 'changed') });
    await operate(['apply', second], moment);
    await operate(['apply', second]);
    expectLiving(['a', 'b']);
    expect(starts('a')).toEqual([untouched]);
    expect(starts('b').length).toBeGreaterThanOrEqual(2);
    expect(starts('b').length).toBeLessThanOrEqual(3);
    expect(readFileSync(join(folder, 'data', 'b.txt'), 'utf8')).toBe('declared by bchanged');
  });

  test.each(moments)('prune, killed after %i ms', async (moment) => {
    make();
    await operate(['apply', write('first.json', { a: service('a'), b: service('b') })]);
    const second = write('second.json', { a: service('a') });
    await operate(['apply', second], moment);
    await operate(['apply', second]);
    expectLiving(['a']);
    expect(starts('a')).toHaveLength(1);
    expect(existsSync(join(folder, 'data', 'b.txt'))).toBe(false);
  });

  test.each(moments)('delete, killed after %i ms', async (moment) => {
    make();
    await operate(['apply', write('spec.json', { a: service('a'), b: service('b', '', ['a']) })]);
    await operate(['delete'], moment);
    await operate(['delete']);
    expect(living()).toEqual([]);
    // What the services wrote stays; what was declared does not.
    expect(readdirSync(join(folder, 'data')).sort()).toEqual(['starts-a', 'starts-b']);
  });
});
