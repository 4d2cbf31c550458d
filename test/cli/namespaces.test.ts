import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';
import { runInProcess } from './in-process.ts';

test('a stack of one name in two namespaces, one of them new: up, looks, logs, restart, why, wait, delete, stop', async () => {
  await using place = await Workplace.make();
  const run = (...args: string[]) => runInProcess(place.folder, args);
  await place.write('small.yaml', smallStack);
  const up = place.start(['up', 'small.yaml']);
  await up.shows('ready: small');
  // The same file, in the same folder, elsewhere: files are claimed by the first, so the second has a folder of its own.
  await place.write('far.yaml', smallStack.replace('directory: ./data', 'directory: ./far'));
  expect(await run('apply', '-n', 'far', '-f', 'far.yaml', '--wait', '--timeout', '60s')).toMatchObject({ code: 0 });
  const ids = (await run('get', 'stacks', '-A', '--no-headers')).stdout.trim().split('\n');
  expect(ids.map((line) => line.split(/ +/).slice(0, 2))).toEqual([
    ['default', 'small'],
    ['far', 'small'],
  ]);
  expect((await run('get', 'processes', '-n', 'far', '-o', 'name')).stdout).toBe('processes/small/idle\nprocesses/small/web\n');
  const pids = async (namespace: string): Promise<string> =>
    (await run('get', 'processes', '-n', namespace, '-o', 'jsonpath={.items[*].status.pid}')).stdout;
  const near = await pids('default');
  expect((await run('logs', 'small', 'web', '-n', 'far')).stdout).toBe('begun\n');
  expect((await run('why', 'stack', 'small', '-n', 'far')).stdout).toBe('small is ready\n');
  const far = await pids('far');
  expect(await run('restart', 'small', 'web', '-n', 'far')).toMatchObject({ code: 0 });
  await expect.poll(() => pids('far'), { timeout: 30_000 }).not.toBe(far);
  expect(await run('wait', 'stack', 'small', '-n', 'far', '--for=ready', '--timeout', '60s')).toMatchObject({ code: 0 });
  expect(await run('delete', 'stack', 'small', '-n', 'far', '--wait', '--timeout', '60s')).toMatchObject({ code: 0 });
  expect(existsSync(place.path('far'))).toBe(false);
  expect(await pids('default')).toBe(near);
  expect((await run('get', 'stacks', '-A', '-o', 'name')).stdout).toBe('stacks/small\n');
}, 120_000);

test('up with a file whose stack is in another namespace waits for that one', async () => {
  await using place = await Workplace.make();
  await place.write('small.yaml', smallStack.replace('id: small', 'id: small, namespace: far'));
  const up = place.start(['up', 'small.yaml', '--until', 'ready', '--timeout', '60s']);
  const { code, stdout } = await up.result;
  expect(code).toBe(0);
  expect(stdout).toMatch(/small Processes\/small\/web: ready\n[\s\S]*ready: small\n/);
  expect(stdout).toMatch(/ {2}web: http:\/\/127\.0\.0\.1:\d+\//);
}, 120_000);
