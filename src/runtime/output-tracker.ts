import type { Kind, Metadata, Pointer } from '../resource/index.ts';
import { invalid, isNotFoundError, isPendingFinalizersError, isPhaseConflictError, kindText } from '../resource/index.ts';
import type { ControllerContext } from './controller.ts';
import { eachOf } from './each-of.ts';
import { keyOf } from './keys.ts';

/** Remembers what a classic controller writes in one cycle, so that what it no longer writes is taken down. */
export class OutputTracker {
  #touched: Map<string, Promise<unknown>> | undefined;

  start(): void {
    this.#touched = new Map();
  }

  /** Nothing is tracked any more: a cycle that failed takes nothing down. */
  stop(): void {
    this.#touched = undefined;
  }

  /** An attempt counts, whatever comes of it: a transient failure must not take down a live output. */
  touch(pointer: Pointer, attempt: Promise<unknown>): void {
    this.#touched?.set(keyOf(pointer), attempt);
  }

  async cleanUp(context: ControllerContext, kinds: readonly Kind[]): Promise<void> {
    const touched = this.#touched;
    if (touched === undefined) throw invalid([{ path: 'cleanupOutputs', message: 'call startTrackingOutputs before it' }]);
    for (const outcome of await Promise.allSettled(touched.values())) {
      if (outcome.status === 'rejected' && !isPhaseConflictError(outcome.reason)) {
        throw new Error('nothing is cleaned up, since an output could not be written', { cause: outcome.reason });
      }
    }
    this.#touched = undefined;
    const goes: Metadata[] = [];
    for (const kind of kinds) {
      for (const { metadata } of (await context.uncached.list(kind)).items) {
        if (metadata.owner !== context.name) continue;
        // What is being torn down goes even if it was asked for: it never comes back to life, another takes its place.
        if (metadata.phase === 'tearingDown' || !touched.has(keyOf(metadata))) goes.push(metadata);
      }
    }
    await eachOf(goes, (metadata) => takeDown(context, metadata, metadata.uid));
  }
}

/** Tears an output down, so that finalizers are honoured, and destroys it once there are none. */
async function takeDown(context: ControllerContext, pointer: Pointer, uid: string): Promise<void> {
  try {
    if (await context.teardown(pointer)) await context.destroy(pointer, { uid });
  } catch (error) {
    // It went already, or somebody holds it once more: its next change wakes us.
    if (!isNotFoundError(error) && !isPendingFinalizersError(error)) throw error;
  }
}

/** Throws Invalid for a kind that the controller does not write. */
export function checkTrackedKinds(kinds: readonly Kind[], isOutput: (type: string) => boolean): void {
  for (const kind of kinds) {
    if (!isOutput(kind.type)) throw invalid([{ path: 'cleanupOutputs', message: `${kindText(kind)} is no output of this controller` }]);
  }
}
