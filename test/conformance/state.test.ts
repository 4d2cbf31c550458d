import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import type { ConformanceStore } from '../../src/testing/index.ts';
import { stateConformance } from '../../src/testing/index.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true };

afterEach(() => {
  expect(environment.open.counts()).toEqual({});
});

async function withFolder<Store extends AsyncDisposable>(make: (folder: string) => Promise<{ readonly state: CoreState; readonly parts: readonly Store[] }>): Promise<ConformanceStore> {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const { state, parts } = await make(folder);
  return {
    state,
    async [Symbol.asyncDispose]() {
      for (const part of parts) await part[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const memory = async (): Promise<ConformanceStore> => {
  const state = memoryState({ environment });
  return { state, [Symbol.asyncDispose]: () => state[Symbol.asyncDispose]() };
};

const sqlite = (): Promise<ConformanceStore> =>
  withFolder(async (folder) => {
    const state = await openSqliteState({ file: join(folder, 'state.db'), environment });
    return { state, parts: [state] };
  });

const remote = (): Promise<ConformanceStore> =>
  withFolder(async (folder) => {
    const inner = memoryState({ environment });
    const server = await serveState({ state: inner, environment, listen: ['unix:api.sock'], directory: folder, control: { version: '0', pid: process.pid, store: 'memory:' } });
    const state = await openRemoteState({ address: `unix:${join(folder, 'api.sock')}`, environment });
    return { state, parts: [state, server, inner] as AsyncDisposable[] };
  });

describe.each([
  ['memory', memory, false],
  ['sqlite', sqlite, true],
  ['remote', remote, false],
] as const)('%s keeps every rule', (_name, makeStore, durableBookmarks) => {
  for (const { name, run } of stateConformance(makeStore, { environment, capabilities: { ...capabilities, durableBookmarks } })) test(name, run);
});
