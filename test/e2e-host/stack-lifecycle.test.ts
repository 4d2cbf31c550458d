import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackInput } from '../../src/host/index.ts';
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
