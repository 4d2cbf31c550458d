import type { Environment } from '../environment/index.ts';
import { guardedMetrics, noMetrics } from '../environment/index.ts';
import type { Kind, Pointer } from '../resource/index.ts';
import { errorCode } from '../resource/index.ts';
import type { CoreState, TeardownOptions } from './core-state.ts';
import { optionalCalls } from './optional-calls.ts';
import type { CallOptions } from './options.ts';

/**
 * Counts and times every call: `steadystate_state_calls_total` by call, type and code (`ok`, an error code, or `other`), and
 * `steadystate_state_call_seconds` by call and type. A watch is one call, timed until it is established. In an environment
 * without metrics it is the store itself.
 */
export function metered(core: CoreState, options: { readonly environment: Environment }): CoreState {
  const { environment } = options;
  if (environment.metrics === noMetrics) return core;
  // A call that went well must not fail because it could not be counted.
  const metrics = guardedMetrics(environment.metrics);
  const calls = metrics.counter('steadystate_state_calls_total', 'Calls of the state, by how they ended', ['call', 'type', 'code']);
  const seconds = metrics.histogram('steadystate_state_call_seconds', 'Duration of calls of the state', ['call', 'type']);
  const { teardown, teardownAndDestroy, watchNamespaces, finalizerNotes } = core;

  async function measure<Value>(call: string, { type }: Pick<Kind, 'type'>, perform: () => Promise<Value>): Promise<Value> {
    const began = environment.elapsed();
    let code = 'other';
    try {
      const value = await perform();
      code = 'ok';
      return value;
    } catch (error) {
      code = errorCode(error) ?? code;
      throw error;
    } finally {
      seconds.observe((environment.elapsed() - began) / 1000, { call, type });
      calls.add(1, { call, type, code });
    }
  }

  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => measure('get', pointer, () => core.get(pointer, call)),
    list: (kind, call) => measure('list', kind, () => core.list(kind, call)),
    create: (resource, call) => measure('create', resource.metadata, () => core.create(resource, call)),
    update: (resource, call) => measure('update', resource.metadata, () => core.update(resource, call)),
    destroy: (pointer, call) => measure('destroy', pointer, () => core.destroy(pointer, call)),
    watch: (pointer, call) => measure('watch', pointer, () => core.watch(pointer, call)),
    watchKind: (kind, call) => measure('watchKind', kind, () => core.watchKind(kind, call)),
    watchKindAggregated: (kind, call) => measure('watchKindAggregated', kind, () => core.watchKindAggregated(kind, call)),
    watchKinds: (kinds, call) => measure('watchKinds', { type: '' }, () => core.watchKinds(kinds, call)),
    ...optionalCalls(core),
    ...(watchNamespaces && {
      watchNamespaces: (type: string, call?: CallOptions) =>
        measure('watchNamespaces', { type }, () => watchNamespaces.call(core, type, call)),
    }),
    ...(finalizerNotes && {
      finalizerNotes: (pointer: Pointer, call?: CallOptions) =>
        measure('finalizerNotes', pointer, () => finalizerNotes.call(core, pointer, call)),
    }),
    ...(teardown && {
      teardown: (pointer: Pointer, call?: TeardownOptions) => measure('teardown', pointer, () => teardown.call(core, pointer, call)),
    }),
    ...(teardownAndDestroy && {
      teardownAndDestroy: (pointer: Pointer, call?: TeardownOptions) =>
        measure('teardownAndDestroy', pointer, () => teardownAndDestroy.call(core, pointer, call)),
    }),
  };
}
