import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackExtra, StackInput } from '../../src/host/index.ts';
import { processDefinition } from '../../src/host/index.ts';
import { alive, condition, everything, port, startHost } from './support.ts';

const server = `
import { createServer } from 'node:http';
createServer((request, response) => response.end('ok')).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'));
`;

const pair: StackInput = {
  directory: './data',
  services: {
    api: {
      command: ['node', 'api.mjs'],
      environment: { PORT: port('api'), DEBUG: 1 },
      files: { 'api.mjs': server, 'etc/api.json': { deep: [1, 2] } },
      dependsOn: ['db'],
      ready: { http: `http://127.0.0.1:${port('api')}/`, intervalMs: 50 },
    },
    db: {
      command: ['node', 'db.mjs'],
      environment: { PORT: port('db') },
      files: { 'db.mjs': server },
      ready: { log: 'listening', intervalMs: 50 },
    },
  },
};

test('a stack comes up in the order of its dependencies, and is taken down to nothing', async () => {
  await using host = await startHost();
  await host.apply('shop', pair);
  await host.untilReady('shop');
  const db = await host.status('shop/db');
  const api = await host.status('shop/api');
  expect(api).toMatchObject({ state: 'Running', ready: true, restarts: 0 });
  expect(String(db.startedAt) < String(api.startedAt)).toBe(true);
  expect(readFileSync(join(host.folder, 'data/etc/api.json'), 'utf8')).toBe('{\n  "deep": [\n    1,\n    2\n  ]\n}\n');
  expect(readFileSync(join(host.folder, 'data/.logs/shop/db.log'), 'utf8')).toBe('listening\n');
  expect(condition(await host.stackStatus('shop'), 'Processes')).toMatchObject({ status: 'True' });
  await host.remove('shop');
  expect(alive(Number(api.pid))).toBe(false);
  expect(alive(Number(db.pid))).toBe(false);
  expect(existsSync(join(host.folder, 'data'))).toBe(false);
  expect(await everything(host)).toEqual([]);
});

test('a deletion stops the services in the reverse order of their dependencies, each once those after it are gone', async () => {
  await using host = await startHost();
  const tells = (name: string, ...dependsOn: string[]): StackInput['services'][string] => ({
    command: [
      'sh',
      '-c',
      `trap 'sleep 0.1; echo ${name} down >> order; exit 0' TERM; echo ${name} up >> order; while true; do sleep 0.02; done`,
    ],
    ready: { command: ['grep', '-q', `${name} up`, 'order'], intervalMs: 20 },
    dependsOn,
  });
  await host.apply('s', {
    directory: 'data',
    services: { front: tells('front', 'middle'), middle: tells('middle', 'back'), back: tells('back') },
  });
  await host.untilReady('s');
  await host.remove('s');
  const order = readFileSync(join(host.folder, 'data/order'), 'utf8').trim().split('\n');
  expect(order).toEqual(['back up', 'middle up', 'front up', 'front down', 'middle down', 'back down']);
});

test('a stack that is deleted while it comes up is taken down as well', async () => {
  await using host = await startHost();
  const never: StackInput['services'][string] = { command: ['sleep', '1000'], ready: { command: ['false'], intervalMs: 20 } };
  await host.apply('s', { directory: 'data', services: { a: never, b: { ...never, dependsOn: ['a'] } } });
  const { pid } = await host.until('s/a', (status) => status.pid !== undefined);
  await host.remove('s');
  expect(alive(Number(pid))).toBe(false);
  expect(await everything(host)).toEqual([]);
  expect(existsSync(join(host.folder, 'data'))).toBe(false);
});

test('a stack that is deleted and declared again at once comes up anew', async () => {
  await using host = await startHost();
  await host.apply('shop', pair);
  const { extra } = await host.untilReady('shop');
  const before = await host.status('shop/api');
  await host.remove('shop');
  await host.apply('shop', pair);
  const again = await host.untilReady('shop');
  const after = await host.status('shop/api');
  expect(after.uid).not.toBe(before.uid);
  expect(after.pid).not.toBe(before.pid);
  expect((again.extra as StackExtra).ports).not.toEqual((extra as StackExtra).ports);
});

test('a paused stack leaves its processes to themselves', async () => {
  await using host = await startHost();
  const stack: StackInput = {
    directory: 'data',
    services: { a: { command: ['sleep', '1000'], ready: { delayMs: 0 }, restart: { initialDelayMs: 10 } } },
  };
  await host.apply('s', stack);
  await host.untilReady('s');
  const { pid } = await host.status('s/a');
  const paused = { annotations: { 'steadystate.dev/paused': 'true' } };
  await host.apply('s', { directory: 'data', services: { a: { command: ['sleep', '2000'], ready: { delayMs: 0 } } } }, paused);
  await host.untilStack('s', (status) => condition(status, 'Paused')?.status === 'True');
  expect((await host.status('s/a')).pid).toBe(pid);
  process.kill(Number(pid), 'SIGKILL');
  const again = await host.until('s/a', (status) => status.ready && status.pid !== pid);
  expect(again.restarts).toBe(1);
  expect((await host.state.get(processDefinition.pointer('s/a'))).spec.command).toEqual(['sleep', '1000']);
});
