import type { CoreState } from './core-state.ts';
import { optionalCalls } from './optional-calls.ts';

/**
 * The state as one controller sees it: what it creates carries `owner`, and what it updates, tears down or destroys must
 * carry it. An `owner` in a call's options counts over this one; `''` is nobody. Finalizers that it puts anywhere are noted as its.
 */
export function owned(core: CoreState, owner: string): CoreState {
  const { teardown, teardownAndDestroy } = core;
  return {
    get capabilities() {
      return core.capabilities;
    },
    get: (pointer, call) => core.get(pointer, call),
    list: (kind, call) => core.list(kind, call),
    create: (resource, call) => core.create(resource, { actor: owner, ...call, owner: call?.owner ?? owner }),
    update: (resource, call) => core.update(resource, { actor: owner, ...call, owner: call?.owner ?? owner }),
    destroy: (pointer, call) => core.destroy(pointer, { ...call, owner: call?.owner ?? owner }),
    watch: (pointer, call) => core.watch(pointer, call),
    watchKind: (kind, call) => core.watchKind(kind, call),
    watchKindAggregated: (kind, call) => core.watchKindAggregated(kind, call),
    watchKinds: (kinds, call) => core.watchKinds(kinds, call),
    ...optionalCalls(core),
    ...(teardown && { teardown: (pointer, call) => teardown.call(core, pointer, { ...call, owner: call?.owner ?? owner }) }),
    ...(teardownAndDestroy && {
      teardownAndDestroy: (pointer, call) => teardownAndDestroy.call(core, pointer, { ...call, owner: call?.owner ?? owner }),
    }),
  };
}
