import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { createRuntime, destroyController } from '../../src/runtime/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { StateEvent } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { stateConformance } from '../../src/testing/index.ts';
import { differences, sometimes } from './differences.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: false, incarnations: false, multiKindWatch: false, tailEvents: true, durableBookmarks: false };

/** A program of its own for each store, so that one that a case breaks takes no other with it. */
async function goServer(): Promise<AsyncDisposable & { readonly address: string }> {
  const program = process.env.INTEROP_GO_SERVER;
  if (program === undefined) throw new Error('INTEROP_GO_SERVER must name the server program; run test/interop/run');
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  child.stdin.write('{"open":"memory"}\n');
  const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  const { address } = JSON.parse(value as string) as { readonly address: string };
  return {
    address,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      const [code] = await ended;
      if (code !== 0) throw new Error(`the server of Go ended with ${code}`);
    },
  };
}

describe('a server of Go, through our client', () => {
  const cases = stateConformance(
    async () => {
      const server = await goServer();
      const core = await openRemoteState({ address: server.address, environment });
      return {
        core,
        async [Symbol.asyncDispose]() {
          await core[Symbol.asyncDispose]();
          await server[Symbol.asyncDispose]();
        },
      };
    },
    { environment, capabilities, limitMs: 1_000, runs: 5, seed: 77187480 },
  );

  test.each(cases.filter(({ name }) => !differences.has(name)))('$name', ({ run }) => run());

  // What the original does otherwise, on purpose or by its protocol: each must still fail, or it is no difference any more.
  test.each(cases.filter(({ name }) => differences.has(name) && !sometimes.has(name)))('differs: $name', ({ run }) =>
    expect(run()).rejects.toThrow(),
  );

  test('several kinds are watched by one stream each', async () => {
    await using server = await goServer();
    const core = await openRemoteState({ address: server.address, environment });
    const kinds = ['As.example.dev', 'Bs.example.dev'].map((type) => ({ namespace: 'default', type }));
    for (const kind of kinds) await core.create({ metadata: { ...kind, id: 'first' }, spec: {} });
    const watch = await core.watchKinds(kinds, { bootstrapContents: true });
    for (const kind of kinds) await core.create({ metadata: { ...kind, id: 'second' }, spec: {} });
    const seen: string[] = [];
    for await (const batch of watch) {
      for (const event of batch)
        seen.push('resource' in event ? `${event.resource.metadata.type} ${event.resource.metadata.id}` : event.type);
      if (seen.length === 5) break;
    }
    await core[Symbol.asyncDispose]();
    expect(seen.slice(0, 3)).toEqual(['As.example.dev first', 'Bs.example.dev first', 'bootstrapped']);
    expect(seen.slice(3).sort()).toEqual(['As.example.dev second', 'Bs.example.dev second']);
  });

  test('our controllers destroy what is torn down there, though it tells no incarnations apart', async () => {
    await using server = await goServer();
    const core = await openRemoteState({ address: server.address, environment });
    const kind = { namespace: 'default', type: 'As.example.dev' };
    const runtime = createRuntime({ state: core, environment });
    runtime.register(destroyController([kind]));
    const stop = new AbortController();
    const running = runtime.run(stop.signal);
    const made = await core.create({ metadata: { ...kind, id: 'a' }, spec: {} });
    expect(made.metadata.uid).toBe('');
    const watch = await core.watch(made.metadata);
    await core.teardown?.(made.metadata);
    for await (const event of watch) if (event.type === 'destroyed' && event.resource.metadata.version !== 'undefined') break;
    stop.abort();
    await running;
    await core[Symbol.asyncDispose]();
  });

  test('a server of ours may stand before it: what its store cannot say is not waited for', async () => {
    await using server = await goServer();
    const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
    const middle = await openRemoteState({ address: server.address, environment });
    const control = { version: '0', pid: process.pid, store: server.address };
    const ours = await serveState({ state: middle, environment, listen: ['unix:s'], directory: folder, control });
    const core = await openRemoteState({ address: ours.addresses[0] as string, environment });
    const state = wrapCore(core, { environment });
    expect(state.capabilities).toEqual(capabilities);
    const kind = { namespace: 'default', type: 'As.example.dev' };
    const { metadata } = await state.create({ metadata: { ...kind, id: 'a', finalizers: ['f'] }, spec: {} });
    const first = async (watch: AsyncIterable<StateEvent | readonly StateEvent[]>) => {
      for await (const next of watch) return [next].flat()[0]?.type;
      return undefined;
    };
    expect(await first(await state.watch(metadata))).toBe('created');
    expect(await first(await state.watchKind(kind, { bootstrapContents: true }))).toBe('created');
    const kinds = await state.watchKinds([kind]);
    const gone = state.teardownAndDestroy(metadata);
    await state.watchFor(metadata, { phases: ['tearingDown'] });
    await state.removeFinalizer(metadata, 'f');
    await gone;
    expect(await first(kinds)).toBe('updated');
    for (const part of [core, ours, middle]) await part[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  test('every difference is a case', () => {
    const names = new Set(cases.map(({ name }) => name));
    expect([...differences.keys()].filter((name) => !names.has(name))).toEqual([]);
  });
});
