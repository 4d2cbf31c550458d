import type { DefinitionRegistry, Resource, ResourceInput } from '../resource/index.ts';
import { assembleResource, makeMetadata, makeResource } from '../resource/index.ts';
import type { CoreState } from './core-state.ts';
import { optionalCalls } from './optional-calls.ts';

/**
 * Checks what is written by the definition of its type, and stores the schema's output. Types without a definition pass
 * unchecked, and so do reads.
 */
export function validated(core: CoreState, registry: DefinitionRegistry): CoreState {
  const { teardown, teardownAndDestroy } = core;
  const check = <Spec>(input: ResourceInput<Spec> | Resource<Spec>): Resource<Spec> => {
    const definition = registry.get(input.metadata.type);
    if (definition === undefined) return makeResource(input);
    const metadata = makeMetadata(input.metadata);
    const spec = definition.validate(input.spec, metadata);
    return spec === input.spec && metadata === input.metadata ? makeResource(input) : assembleResource(metadata, spec as Spec);
  };
  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => core.get(pointer, call),
    list: (kind, call) => core.list(kind, call),
    create: async (resource, call) => core.create(check(resource), call),
    update: async (resource, call) => core.update(check(resource), call),
    destroy: (pointer, call) => core.destroy(pointer, call),
    watch: (pointer, call) => core.watch(pointer, call),
    watchKind: (kind, call) => core.watchKind(kind, call),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, call),
    watchKinds: (kinds, call) => core.watchKinds(kinds, call),
    ...optionalCalls(core),
    ...(teardown && { teardown: teardown.bind(core) }),
    ...(teardownAndDestroy && { teardownAndDestroy: teardownAndDestroy.bind(core) }),
  };
}
