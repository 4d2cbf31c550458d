import type { Resource } from '../resource/index.ts';
import { compareIds, namespaceDefinition } from '../resource/index.ts';
import type { CoreState } from './core-state.ts';
import { closed, unsupported } from './errors.ts';
import type { StateEvent } from './events.ts';
import type { CallOptions } from './options.ts';

/** The event of `watchNamespaces` that a namespace has resources of the type now, or has none any more. */
export function namespaceEvent(namespace: string, present: boolean): StateEvent {
  const resource = namespaceDefinition.create({ id: namespace, spec: { description: '' } }) as Resource;
  return Object.freeze({ type: present ? 'created' : 'destroyed', resource });
}

/** The namespaces in which a type has resources now, sorted. Unsupported by a store that cannot tell. */
export async function listNamespaces(
  core: Pick<CoreState, 'watchNamespaces'>,
  type: string,
  options?: CallOptions,
): Promise<readonly string[]> {
  if (core.watchNamespaces === undefined)
    throw unsupported('this store cannot tell in which namespaces a type has resources; name the namespaces');
  await using watch = await core.watchNamespaces(type, options);
  const found = new Set<string>();
  for await (const batch of watch) {
    for (const event of batch) {
      if (event.type === 'errored') throw event.error;
      if (event.type === 'created') found.add(event.resource.metadata.id);
      if (event.type === 'destroyed') found.delete(event.resource.metadata.id);
      if (event.type === 'bootstrapped') return [...found].sort(compareIds);
    }
  }
  options?.signal?.throwIfAborted();
  throw closed('the store was closed');
}
