import type { Environment, Logger } from '../environment/index.ts';
import { isNotFoundError } from '../resource/index.ts';
import type { CoreState, State } from '../state/index.ts';
import { owned, wrapCore } from '../state/index.ts';
import type { AccessLimits } from './access.ts';
import type { ControllerContext } from './controller.ts';

/** Counts what a controller does. */
export interface ContextCounters {
  read(): void;
  write(): void;
}

/** The view of the state that one controller gets for one run. */
export function controllerContext(options: {
  readonly name: string;
  readonly core: CoreState;
  readonly environment: Environment;
  readonly limits: AccessLimits;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly counters: ContextCounters;
}): ControllerContext {
  const { name, limits, counters, signal, log } = options;
  const state: State = wrapCore(owned(options.core, name), { environment: options.environment });
  const reader: Pick<ControllerContext, 'get' | 'list'> = {
    async get(pointer, call) {
      limits.checkRead(pointer);
      counters.read();
      return state.get(pointer, { signal, ...call });
    },
    async list(kind, call) {
      limits.checkList(kind);
      counters.read();
      return state.list(kind, { signal, ...call });
    },
  };
  const write = (pointer: Parameters<AccessLimits['checkWrite']>[0]): void => {
    limits.checkWrite(pointer);
    signal.throwIfAborted();
    counters.write();
  };
  return {
    name,
    signal,
    log,
    ...reader,
    uncached: reader,
    async abortSignalOnTeardown(pointer, call) {
      limits.checkRead(pointer);
      return state.abortSignalOnTeardown(pointer, call);
    },
    async create(resource, { noOwner, ...call } = {}) {
      write(resource.metadata);
      return state.create(resource, noOwner === true ? { ...call, owner: '' } : call);
    },
    async update(resource, call) {
      write(resource.metadata);
      return state.update(resource, call);
    },
    async modify(empty, updater, { noOwner, ...call } = {}) {
      write(empty.metadata);
      return state.modifyWithResult(empty, updater, noOwner === true ? { ...call, owner: '' } : call);
    },
    async updateWithConflicts(pointer, updater, call) {
      write(pointer);
      return state.updateWithConflicts(pointer, updater, call);
    },
    async teardown(pointer, call) {
      write(pointer);
      return state.teardown(pointer, call);
    },
    async destroy(pointer, call) {
      write(pointer);
      return state.destroy(pointer, call);
    },
    async addFinalizer(pointer, ...finalizers) {
      limits.checkFinalizer(pointer);
      signal.throwIfAborted();
      counters.write();
      await state.addFinalizer(pointer, ...finalizers);
    },
    async removeFinalizer(pointer, ...finalizers) {
      limits.checkFinalizer(pointer);
      signal.throwIfAborted();
      counters.write();
      try {
        await state.removeFinalizer(pointer, ...finalizers);
      } catch (error) {
        // What is gone has no finalizer any more.
        if (!isNotFoundError(error)) throw error;
      }
    },
  };
}
