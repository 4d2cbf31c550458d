import type { Span, SpanAttributes, Tracer } from '../environment/index.ts';
import { guardedTracer, noTracer } from '../environment/index.ts';
import type { Kind, Pointer } from '../resource/index.ts';
import { errorCode } from '../resource/index.ts';
import type { CoreState, TeardownOptions } from './core-state.ts';
import { optionalCalls } from './optional-calls.ts';
import type { CallOptions } from './options.ts';

/**
 * Makes a span of every call: `state.get`, `state.watchKind`, … with `steadystate.namespace`, `.type` and `.id`, a failure with its
 * code as `steadystate.code`. `span` in a call's options is its parent, and what lies below (a server far away, too) gets the new
 * span as its own. A watch is one call, from asking to established. With `noTracer` it is the store itself.
 */
export function traced(core: CoreState, given: Tracer): CoreState {
  if (given === noTracer) return core;
  const tracer = guardedTracer(given);
  const { teardown, teardownAndDestroy, watchNamespaces, finalizerNotes } = core;

  async function trace<Options extends CallOptions, Value>(
    name: string,
    attributes: SpanAttributes,
    call: Options | undefined,
    perform: (call: Options) => Promise<Value>,
  ): Promise<Value> {
    const span = tracer.start(`state.${name}`, { attributes, parent: call?.span });
    try {
      return await span.run(() => perform({ ...(call as Options), ...(span.context && { span: span.context }) }));
    } catch (error) {
      failSpan(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => trace('get', about(pointer), call, (inner) => core.get(pointer, inner)),
    list: (kind, call) => trace('list', about(kind), call, (inner) => core.list(kind, inner)),
    create: (resource, call) => trace('create', about(resource.metadata), call, (inner) => core.create(resource, inner)),
    update: (resource, call) => trace('update', about(resource.metadata), call, (inner) => core.update(resource, inner)),
    destroy: (pointer, call) => trace('destroy', about(pointer), call, (inner) => core.destroy(pointer, inner)),
    watch: (pointer, call) => trace('watch', about(pointer), call, (inner) => core.watch(pointer, inner)),
    watchKind: (kind, call) => trace('watchKind', about(kind), call, (inner) => core.watchKind(kind, inner)),
    watchKindAggregated: (kind, call) => trace('watchKindAggregated', about(kind), call, (inner) => core.watchKindAggregated(kind, inner)),
    watchKinds: (kinds, call) =>
      trace('watchKinds', { 'steadystate.type': kinds.map(({ type }) => type).join() }, call, (inner) => core.watchKinds(kinds, inner)),
    ...optionalCalls(core),
    ...(watchNamespaces && {
      watchNamespaces: (type: string, call?: CallOptions) =>
        trace('watchNamespaces', { 'steadystate.type': type }, call, (inner) => watchNamespaces.call(core, type, inner)),
    }),
    ...(finalizerNotes && {
      finalizerNotes: (pointer: Pointer, call?: CallOptions) =>
        trace('finalizerNotes', about(pointer), call, (inner) => finalizerNotes.call(core, pointer, inner)),
    }),
    ...(teardown && {
      teardown: (pointer: Pointer, call?: TeardownOptions) =>
        trace('teardown', about(pointer), call, (inner) => teardown.call(core, pointer, inner)),
    }),
    ...(teardownAndDestroy && {
      teardownAndDestroy: (pointer: Pointer, call?: TeardownOptions) =>
        trace('teardownAndDestroy', about(pointer), call, (inner) => teardownAndDestroy.call(core, pointer, inner)),
    }),
  };
}

/** Tells a span what its work failed with. */
export function failSpan(span: Span, error: unknown): void {
  const code = errorCode(error);
  if (code !== undefined) span.setAttributes({ 'steadystate.code': code });
  span.fail(error);
}

/** What a span about a resource or a kind carries. */
function about({ namespace, type, id }: Kind & { readonly id?: string }): SpanAttributes {
  return { 'steadystate.namespace': namespace, 'steadystate.type': type, ...(id !== undefined && { 'steadystate.id': id }) };
}
