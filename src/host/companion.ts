import type { AnyResourceDefinition, Pointer, Resource, ResourceDefinition } from '../resource/index.ts';
import { isNotFoundError, sameValue, thisIncarnation, thrownText } from '../resource/index.ts';
import type { ControllerContext, Namespaces } from '../runtime/index.ts';
import { namespacesWith } from '../runtime/index.ts';

/** A resource, or `undefined` when it is not there. */
export async function find<Spec>(context: Pick<ControllerContext, 'get'>, pointer: Pointer<Spec>): Promise<Resource<Spec> | undefined> {
  try {
    return await context.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}

/** The status of a resource, if its companion was made for this incarnation. */
export async function readStatus<Status extends { readonly uid: string }>(
  context: ControllerContext,
  definition: ResourceDefinition<Status>,
  resource: Resource,
): Promise<Status | undefined> {
  const companion = await find(context, definition.pointer(resource.metadata.id, resource.metadata.namespace));
  return companion?.spec.uid === resource.metadata.uid ? companion.spec : undefined;
}

/** Makes the companion say this; an equal one costs no write. Durable when it resolves. */
export async function writeStatus<Status extends { readonly uid: string }>(
  context: ControllerContext,
  definition: ResourceDefinition<Status>,
  pointer: Pointer,
  next: Status,
): Promise<void> {
  const companion = definition.create({ id: pointer.id, namespace: pointer.namespace, spec: next });
  await context.modify(companion, (draft) => {
    if (!sameValue(draft.spec, companion.spec)) draft.spec = companion.spec;
  });
}

/** Removes something; that it could not be removed shows in the status before it is thrown. */
export async function tellingFailure<Status extends { readonly uid: string; readonly state: string }>(
  context: ControllerContext,
  definition: ResourceDefinition<Status>,
  resource: Resource,
  status: Status,
  remove: () => Promise<void>,
): Promise<void> {
  try {
    await remove();
  } catch (error) {
    context.signal.throwIfAborted();
    if (systemCode(error) !== '') {
      const failed = { ...status, state: 'Failed', ready: false, reason: 'CannotRemove', message: systemText(error) };
      await writeStatus(context, definition, resource.metadata, failed);
    }
    throw error;
  }
}

/** The last writes about a resource that is torn down: its companion goes, then our finalizer. */
export async function finish<Status>(
  context: ControllerContext,
  definition: ResourceDefinition<Status>,
  pointer: Pointer,
  finalizer: string,
): Promise<void> {
  try {
    await context.destroy(definition.pointer(pointer.id, pointer.namespace));
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
  await context.removeFinalizer(pointer, finalizer);
}

/** The companion of a resource that is gone goes too. */
export async function removeCompanion<Status>(
  context: ControllerContext,
  definition: ResourceDefinition<Status>,
  pointer: Pointer,
): Promise<void> {
  const companion = await find(context, definition.pointer(pointer.id, pointer.namespace));
  if (companion === undefined) return;
  try {
    await context.destroy(companion.metadata, thisIncarnation(companion.metadata));
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
}

/** Wakes for the resources that went, although they were held, while no operator ran: only their companions tell of them. */
export async function wakeAbandoned(
  context: ControllerContext & { readonly wake: (pointer: Pointer) => void },
  namespaces: Namespaces,
  definition: AnyResourceDefinition,
  statusDefinition: AnyResourceDefinition,
): Promise<void> {
  for (const namespace of await namespacesWith(context, namespaces, statusDefinition.type)) {
    const { items } = await context.list(statusDefinition.kind(namespace));
    for (const { metadata } of items) {
      const pointer = definition.pointer(metadata.id, namespace);
      if ((await find(context, pointer)) === undefined) context.wake(pointer);
    }
  }
}

/** Text that names a resource, for maps. */
export function keyOf({ namespace, id }: Pointer): string {
  return JSON.stringify([namespace, id]);
}

/** A system error's code (`ENOENT`); empty when it has none. */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** What a person can do about a system error, in front of what the system says. */
export function systemText(error: unknown): string {
  const text = thrownText(error);
  const advice: Readonly<Record<string, string>> = {
    EACCES: 'no permission; change the permissions, or the user that runs this program',
    EPERM: 'not allowed to this user',
    ENOSPC: 'the disk is full; make room',
    EROFS: 'the file system is read-only',
    EDQUOT: 'the disk quota is used up; make room',
    ENAMETOOLONG: 'the path is too long; choose a shorter one',
    EMFILE: 'too many open files in this program',
    E2BIG: 'the command and its environment are too large for this system; put what is large into a file',
  };
  const known = advice[systemCode(error)];
  return known === undefined ? text : `${known} (${text})`;
}
