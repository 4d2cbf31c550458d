import type { Kind, Metadata, Pointer, Tombstone } from './resource.ts';
import { undefinedVersion } from './resource.ts';
import { visibleText } from './text.ts';

/** `type/namespace/id` for messages, on one line whatever the names hold. */
export function pointerText(pointer: Pointer): string {
  return visibleText(`${pointer.type}/${pointer.namespace}/${pointer.id}`);
}

/** `type in namespace` for messages. */
export function kindText(kind: Kind): string {
  return visibleText(`${kind.type} in ${kind.namespace}`);
}

/** The pointer of a resource, without the rest of its metadata. */
export function pointerOf(resource: { readonly metadata: Pointer }): Pointer {
  const { namespace, type, id } = resource.metadata;
  return { namespace, type, id };
}

/** The option by which a destroy or a teardown is about this incarnation only; none where its store tells no incarnations apart. */
export function thisIncarnation({ uid }: Pick<Metadata, 'uid'>): { readonly uid?: string } {
  return uid === '' ? {} : { uid };
}

/** Says that nothing is there. */
export function tombstone(pointer: Pointer): Tombstone {
  return Object.freeze({ metadata: emptyMetadata(pointer) });
}

export function isTombstone(resource: { readonly metadata: Metadata; readonly spec?: unknown }): resource is Tombstone {
  return resource.spec === undefined;
}

const noTexts: readonly string[] = Object.freeze([]);
const noPairs: Readonly<Record<string, string>> = Object.freeze({});

export function emptyMetadata(pointer: Pointer): Metadata {
  return Object.freeze({
    namespace: pointer.namespace,
    type: pointer.type,
    id: pointer.id,
    version: undefinedVersion,
    uid: '',
    phase: 'running',
    owner: '',
    finalizers: noTexts,
    labels: noPairs,
    annotations: noPairs,
    created: '',
    updated: '',
  });
}
