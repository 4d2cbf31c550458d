import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import type { MakeStore } from '../../src/testing/index.ts';
import { stateConformance } from '../../src/testing/index.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };

/** A server whose store is the client of another server. */
const chain: MakeStore = async (request) => {
  const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const inner = memoryState({ environment, ...request });
  const control = { version: '0', pid: process.pid, store: 'memory:' };
  const serve = (state: CoreState, socket: string) =>
    serveState({ state, environment, listen: [`unix:${socket}`], directory: folder, control });
  const first = await serve(inner, 'a');
  const middle = await openRemoteState({ address: `unix:${join(folder, 'a')}`, environment });
  const second = await serve(middle, 'b');
  const core = await openRemoteState({ address: `unix:${join(folder, 'b')}`, environment });
  return {
    core,
    async [Symbol.asyncDispose]() {
      for (const part of [core, second, middle, first, inner]) await part[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

describe('a server before a server keeps every rule', () => {
  test.each(stateConformance(chain, { environment, capabilities, runs: 5 }))('$name', ({ run }) => run(), 60_000);
});
