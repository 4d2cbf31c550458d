import type { Pointer, Resource, SteadystateError, Tombstone } from '../resource/index.ts';
import { isTombstone, pointerText } from '../resource/index.ts';
import type { CoreState } from './core-state.ts';
import { closed, gone } from './errors.ts';
import type { StateEvent } from './events.ts';
import type { CallOptions } from './options.ts';
import type { WatchForCondition } from './state.ts';

/** Waits until an event matches; see `State.watchFor`. */
export async function watchFor<Spec>(
  core: CoreState,
  pointer: Pointer<Spec>,
  condition: WatchForCondition<Spec>,
  options: CallOptions = {},
): Promise<Resource<Spec>> {
  options.signal?.throwIfAborted();
  const endsWithIncarnation = condition.finalizersEmpty === true || condition.phases?.includes('tearingDown') === true;
  await using watch = await core.watch(pointer, {
    ...(options.signal && { signal: options.signal }),
    ...(options.span && { span: options.span }),
  });
  let uid: string | undefined;
  for await (const event of watch) {
    if (event.type === 'errored') throw event.error;
    const about = event.type === 'created' || event.type === 'updated' || event.type === 'destroyed' ? event.resource : undefined;
    // Its end can be coalesced with what came after: another incarnation is not the awaited one, whatever it looks like.
    const replaced = about !== undefined && event.type !== 'destroyed' && uid !== undefined && about.metadata.uid !== uid;
    if (endsWithIncarnation && replaced) throw wentAway(pointer);
    if (await matchesEvent(condition, event)) return (event as { resource: Resource<Spec> }).resource;
    if (!endsWithIncarnation || about === undefined) continue;
    // A first `destroyed` says "not yet"; one that follows a real resource says that it went.
    if (event.type === 'destroyed' && uid !== undefined) throw wentAway(pointer);
    if (!isTombstone(about)) uid = about.metadata.uid;
  }
  options.signal?.throwIfAborted();
  throw closed(`the watch of ${pointerText(pointer)} ended while it was awaited: the store was closed`);
}

function wentAway(pointer: Pointer): SteadystateError {
  return gone(pointer, 'went away before it was as awaited');
}

/** Whether an event matches all parts of a condition that are given. */
export async function matchesEvent<Spec>(condition: WatchForCondition<Spec>, event: StateEvent<Spec>): Promise<boolean> {
  if (event.type === 'errored' || event.type === 'kindErrored') return false;
  if (condition.eventTypes !== undefined && !condition.eventTypes.includes(event.type)) return false;
  const aboutResource = condition.phases !== undefined || condition.condition !== undefined || condition.finalizersEmpty === true;
  if (event.type === 'bootstrapped' || event.type === 'noop') return condition.eventTypes !== undefined && !aboutResource;
  if (!aboutResource) return condition.eventTypes !== undefined || event.type !== 'destroyed';
  // What a `destroyed` event carries is no longer real, unless that event is what was asked for.
  if (event.type === 'destroyed' && condition.eventTypes === undefined) return false;
  const resource: Resource<Spec> | Tombstone = event.resource;
  if (isTombstone(resource)) return false;
  if (condition.phases !== undefined && !condition.phases.includes(resource.metadata.phase)) return false;
  if (condition.finalizersEmpty === true && resource.metadata.finalizers.length > 0) return false;
  return condition.condition === undefined || (await condition.condition(resource as Resource<Spec>));
}
