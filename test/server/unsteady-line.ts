import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { isUnavailableError } from '../../src/resource/index.ts';
import { serveState } from '../../src/server/index.ts';
import type { AggregatedWatch, CoreState, EventSource, Watch, WatchKindOptions } from '../../src/state/index.ts';
import { createAggregatedWatch, createWatch, mapSource, sourceOf } from '../../src/state/index.ts';
import type { ConformanceCase, MakeStore } from '../../src/testing/index.ts';
import { stateConformance } from '../../src/testing/index.ts';
import type { Faults } from './cutting-proxy.mjs';
import { CuttingProxy } from './cutting-proxy.mjs';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };
let lines = 0;
/** What the lines have suffered so far. */
export const suffered = { cuts: 0 };

/** Tries again while the line is down: the start of a watch is no place to go on from. */
async function patiently<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isUnavailableError(error)) throw error;
      await environment.sleep(5);
    }
  }
}

/** After each mended line a watch tells by a bare bookmark that it has caught up: one may come anywhere, so the cases do not count them. */
function withoutMarks(watch: Watch | AggregatedWatch, options: WatchKindOptions = {}): EventSource {
  // The one that was asked for comes first.
  let asked = options.bootstrapBookmark === true;
  return mapSource(sourceOf(watch), (batch) =>
    batch.filter(({ type }) => {
      if (type !== 'noop') return true;
      const first = asked;
      asked = false;
      return first;
    }),
  );
}

/** Writes and reads go straight to the server, watches over an unsteady line. */
const overLine =
  (faults: Faults): MakeStore =>
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'steadystate-'));
    const inner = memoryState({ environment });
    const control = { version: '0', pid: process.pid, store: 'memory:' };
    const server = await serveState({ state: inner, environment, listen: ['unix:s'], directory: folder, control });
    const address = `unix:${join(folder, 's')}`;
    const proxy = await CuttingProxy.between(address, `unix:${join(folder, 'p')}`, ++lines, faults);
    const direct = await openRemoteState({ address, environment });
    const unsteady = await patiently(() => openRemoteState({ address: proxy.address, environment }));
    const core: CoreState = {
      capabilities: direct.capabilities,
      get: (pointer, options) => direct.get(pointer, options),
      list: (kind, options) => direct.list(kind, options),
      create: (resource, options) => direct.create(resource, options),
      update: (resource, options) => direct.update(resource, options),
      destroy: (pointer, options) => direct.destroy(pointer, options),
      teardown: (pointer, options) => (direct.teardown as NonNullable<CoreState['teardown']>)(pointer, options),
      watch: (pointer, options) => patiently(() => unsteady.watch(pointer, options)),
      watchKind: async (kind, options) =>
        createWatch(withoutMarks(await patiently(() => unsteady.watchKind(kind, options)), options), {
          environment,
          signal: options?.signal,
        }),
      watchKindAggregated: async (kind, options) =>
        createAggregatedWatch(withoutMarks(await patiently(() => unsteady.watchKindAggregated(kind, options)), options), {
          environment,
          signal: options?.signal,
        }),
      watchKinds: async (kinds, options) =>
        createAggregatedWatch(withoutMarks(await patiently(() => unsteady.watchKinds(kinds, options)), options), {
          environment,
          signal: options?.signal,
        }),
    };
    return {
      core,
      async [Symbol.asyncDispose]() {
        await unsteady[Symbol.asyncDispose]();
        await proxy.close();
        for (const part of [direct, server, inner]) await part[Symbol.asyncDispose]();
        suffered.cuts += proxy.cuts;
        await rm(folder, { recursive: true, force: true });
      },
    };
  };

/** What promises something of watches. */
const watched = /^(watch|streams|bookmarks|races|lag|generated)/;
/**
 * A line that breaks while contents are given has no place to go on from, and the watch says so, or begins once more for a
 * reader that has seen nothing; and cases of hundreds of
 * watches or of readers that must fall behind take minutes with every line that is mended.
 * One wait begins its watch beside writes that take the straight way, and may come too late to see them.
 */
const unfit =
  /Gone when the end|in batches that are never empty|below the floor|reading what is ready|fall behind|a list and a watch from its bookmark/;

/** The cases of watches, over lines that suffer so. */
export function lineCases(faults: Faults, options: { readonly runs: number; readonly only?: RegExp }): readonly ConformanceCase[] {
  const { runs, only = watched } = options;
  return stateConformance(overLine(faults), { environment, capabilities, runs, seed: 1, limitMs: 15_000 }).filter(
    ({ name }) => watched.test(name) && only.test(name) && !unfit.test(name),
  );
}
