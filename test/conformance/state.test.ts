import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { serveState } from '../../src/server/index.ts';
import { listNamespaces } from '../../src/state/index.ts';
import type { MakeStore } from '../../src/testing/index.ts';
import { stateConformance } from '../../src/testing/index.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };

const memory: MakeStore = (request) => {
  const core = memoryState({ environment, ...request });
  return { core, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
};

const sqlite: MakeStore = async (request) => {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const open = () =>
    openSqliteState({
      file: join(folder, 'state.db'),
      environment,
      ...request,
      ...(request.historySize !== undefined && { historyLimit: request.historySize }),
    });
  let core = await open();
  return {
    core,
    async reopen() {
      await core[Symbol.asyncDispose]();
      core = await open();
      return core;
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const remote: MakeStore = async (request) => {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const inner = memoryState({ environment, ...request });
  const control = { version: '0', pid: process.pid, store: 'memory:' };
  const server = await serveState({ state: inner, environment, listen: ['unix:api.sock'], directory: folder, control });
  const core = await openRemoteState({ address: `unix:${join(folder, 'api.sock')}`, environment });
  return {
    core,
    async [Symbol.asyncDispose]() {
      for (const part of [core, server, inner]) await part[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

describe.each([
  ['memory', memory, { shortHistory: true, capabilities, runs: 100 }],
  ['SQLite', sqlite, { shortHistory: true, capabilities: { ...capabilities, durableBookmarks: true }, runs: 10 }],
  ['the remote client', remote, { capabilities, runs: 10 }],
] as const)('%s keeps every rule', (_name, makeStore, options) => {
  test('and can tell in which namespaces a type has resources', async () => {
    await using store = await makeStore({});
    await store.core.create({ metadata: { namespace: 'shop', type: 'Things.example.dev', id: 'a' }, spec: {} });
    expect(await listNamespaces(store.core, 'Things.example.dev')).toEqual(['shop']);
  });

  test.each(stateConformance(makeStore, { environment, ...options }))('$name', ({ run }) => run());
});
