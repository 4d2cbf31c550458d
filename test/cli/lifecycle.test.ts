import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Background } from './harness.ts';
import { program, smallStack, Workplace } from './harness.ts';

/** Where there is none, a pipe is looked at by the next write. */
const gnuTail = process.platform === 'linux' && spawnSync('tail', ['--version']).stdout?.includes('GNU') === true;

describe('a stack, from a second terminal', () => {
  let place: Workplace;
  let up: Background;

  beforeAll(async () => {
    place = await Workplace.make();
    await place.write('small.yaml', smallStack);
    up = place.start(['up', 'small.yaml']);
    await up.shows('to start over: rm -r .steadystate');
  });

  afterAll(() => place[Symbol.asyncDispose]());

  test('up tells what moved, a line each, and what to try next', () => {
    expect(up.output).toMatch(/stacks\/small created\n/);
    expect(up.output).toMatch(/small Processes\/small\/web: ready\n[\s\S]*small Processes\/small\/idle: ready\n[\s\S]*ready: small\n/);
    expect(up.output).toMatch(/ {2}web: http:\/\/127\.0\.0\.1:\d+\//);
    expect(up.output).not.toContain('\u001b');
  });

  test('get: table, wide, yaml, json, name, jsonpath', async () => {
    const table = await place.run(['get', 'processes']);
    expect(table.stdout).toMatch(
      /^ID +STATE +PID +RESTARTS +READY +AGE +REASON\nsmall\/idle +Running +\d+ +0 +true +\S+\nsmall\/web +Running/,
    );
    expect((await place.run(['get', 'stacks', '-A'])).stdout).toMatch(/^NAMESPACE +ID/);
    expect((await place.run(['get', 'STACK', 'small', '-o', 'wide'])).stdout).toContain('VERSION');
    expect((await place.run(['get', 'stack', 'small', '-o', 'name'])).stdout).toBe('stacks/small\n');
    expect(JSON.parse((await place.run(['get', 'stack', 'small', '-o', 'json'])).stdout)).toMatchObject({ metadata: { id: 'small' } });
    expect(JSON.parse((await place.run(['get', 'stacks', '-o', 'json'])).stdout).items).toHaveLength(1);
    expect(
      (await place.run(['get', 'processes', '-o', 'jsonpath={range .items[*]}{.metadata.id} {.status.state}{"\\n"}{end}'])).stdout,
    ).toBe('small/idle Running\nsmall/web Running\n');
  });

  test('what get prints can be applied again, and changes nothing', async () => {
    for (const format of ['yaml', 'json']) {
      const { stdout } = await place.run(['get', 'stack', 'small', '-o', format]);
      expect(await place.run(['apply', '-f', '-'], { input: stdout })).toMatchObject({ code: 0, stdout: 'stacks/small unchanged\n' });
    }
  });

  test('describe, types, why, logs', async () => {
    expect((await place.run(['describe', 'stack', 'small'])).stdout).toMatch(/conditions:\n[\s\S]*Ready +True/);
    expect((await place.run(['types'])).stdout).toMatch(/Stack +\S* *Stacks\.host\.steadystate\.dev/);
    expect((await place.run(['why', 'stack', 'small'])).stdout).toBe('small is ready\n');
    expect((await place.run(['logs', 'small', 'web'])).stdout).toBe('begun\n');
    expect((await place.run(['logs', 'small'])).stdout.split('\n').sort()).toEqual(['', 'idle | hello', 'web | begun']);
    expect(await place.run(['logs', 'small', 'wbe'])).toMatchObject({ code: 3, stderr: expect.stringContaining('web') });
  });

  test('wait: ready, a condition, a path; wrong use and time-outs have their codes', async () => {
    expect((await place.run(['wait', 'stack', 'small', '--for=ready'])).code).toBe(0);
    expect((await place.run(['wait', 'stack', 'small', '--for=condition=Ready'])).code).toBe(0);
    expect((await place.run(['wait', 'process', 'small/web', '--for=jsonpath={.status.restarts}=0'])).code).toBe(0);
    expect(await place.run(['wait', 'process', 'small/web', '--for=jsonpath={.status.restarts}=7', '--timeout', '200ms'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('{.status.restarts} is 0'),
    });
    expect((await place.run(['wait', 'stack', 'small', '--for=destroyed', '--timeout', '100ms'])).code).toBe(5);
    expect((await place.run(['wait', 'stack', 'none', '--for=destroyed'])).code).toBe(0);
    expect((await place.run(['wait', 'stack', 'none', '--for=ready', '--timeout', '100ms'])).code).toBe(5);
    expect((await place.run(['wait', 'stack', 'small', '--for=lunch'])).code).toBe(2);
  });

  test('restart restarts that service only', async () => {
    const pids = async () => (await place.run(['get', 'processes', '-o', 'jsonpath={.items[*].status.pid}'])).stdout.split(' ');
    const [idle, web] = await pids();
    expect((await place.run(['restart', 'small', 'idle'])).code).toBe(0);
    expect((await place.run(['wait', 'stack', 'small', '--for=ready'])).code).toBe(0);
    const [newIdle, newWeb] = await pids();
    expect(newWeb).toBe(web);
    expect(newIdle).not.toBe(idle);
  });

  test('a second up says so and applies its files there', async () => {
    const second = await place.run(['up', 'small.yaml', '--until', 'ready']);
    expect(second.stdout).toMatch(
      new RegExp(`running here already \\(process ${up.pid}\\)[\\s\\S]*stacks/small unchanged[\\s\\S]*ready: small`),
    );
    expect(second.code).toBe(0);
  });

  test('a watch prints a line per change, and ends quietly with its reader', async () => {
    const watch = place.start(['watch', 'stacks', '-o', 'json']);
    await watch.shows('bootstrapped');
    await place.run(['apply', '-f', '-'], { input: smallStack.replace('id: small', 'id: small, labels: { shown: "yes" }') });
    await watch.shows('"shown":"yes"');
    watch.kill('SIGINT');
    expect((await watch.result).code).toBe(0);
    const events = watch.output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['created', 'bootstrapped']);
    expect(events.slice(2).every(({ type }) => type === 'updated' || type === 'noop')).toBe(true);
  });

  test.runIf(gnuTail)('the reader of a pipe that goes ends at once what goes on, though nothing happens', async () => {
    const piped = ['get stacks -w', 'watch stacks', 'logs small idle -f', 'events -w'].map(async (command) => {
      const line = `{ '${process.execPath}' '${program}' ${command}; echo "ended with $?" >&2; } | head -n 1`;
      return await promisify(execFile)('/bin/sh', ['-c', line], { cwd: place.folder });
    });
    for (const { stdout, stderr } of await Promise.all(piped)) {
      expect(stdout).toMatch(/^[^\n]+\n$/);
      expect(stderr).toBe('ended with 0\n');
    }
  });

  test('what a controller owns cannot be changed or deleted from outside', async () => {
    const { stdout } = await place.run(['get', 'process', 'small/web', '-o', 'yaml']);
    expect(
      await place.run(['apply', '-f', '-'], { input: stdout.replace(/^ +version: .*\n/m, '').replace('server.mjs', 'other.mjs') }),
    ).toMatchObject({ code: 4, stderr: expect.stringContaining('owned by the controller') });
    expect(await place.run(['delete', 'process', 'small/web'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('owned by the controller'),
    });
  });

  test('delete --wait takes everything down, and says what it waits for', async () => {
    const deleted = await place.run(['delete', 'stack', 'small', '--wait', '--timeout', '15s']);
    expect(deleted).toMatchObject({ code: 0, stdout: 'stacks/small is being deleted\nstacks/small deleted\n' });
    for (const type of ['stacks', 'processes', 'files', 'directories']) expect((await place.run(['get', type])).stdout).toBe('');
    expect(existsSync(place.path('data'))).toBe(false);
    expect((await place.run(['delete', 'stack', 'small'])).code).toBe(3);
  });

  test('Ctrl-C stops gracefully', async () => {
    up.kill('SIGINT');
    expect((await up.result).code).toBe(0);
    expect(existsSync(place.path('.steadystate/api.sock'))).toBe(false);
  });
});

describe('up, at bad moments', () => {
  test('a stack whose deletion was cut short is taken down, then brought up', async () => {
    await using place = await Workplace.make();
    await place.write('small.yaml', smallStack);
    expect(await place.run(['up', 'small.yaml', '--until', 'ready'])).toMatchObject({ code: 0 });
    // Nobody takes it down: no operator runs.
    expect(await place.run(['delete', 'stack', 'small'])).toMatchObject({ code: 0, stdout: 'stacks/small is being deleted\n' });
    const again = await place.run(['up', 'small.yaml', '--until', 'ready']);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('stacks/small is still being deleted; waiting for its end\n') });
    expect(again.stdout).toMatch(/^stacks\/small created\n[\s\S]*ready: small\n/);
  });

  test('of two that start at once, one serves and the other applies there', async () => {
    await using place = await Workplace.make();
    await place.write('small.yaml', smallStack);
    const both = [place.start(['up', 'small.yaml']), place.start(['up', 'small.yaml'])];
    await Promise.all(both.map((each) => each.shows('ready: small')));
    expect(both.filter(({ output }) => output.includes('running here already'))).toHaveLength(1);
  });
});
