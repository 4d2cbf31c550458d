import type { Kind, Resource } from '../resource/index.ts';
import { digest, isNotFoundError } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import type { TypesLookup } from './types-lookup.ts';

/** A resource with its status companion as `.status`: what columns and JSONPaths look at. Sensitive values are masked. */
export interface JoinedResource {
  readonly metadata: Resource['metadata'];
  readonly spec: unknown;
  readonly status?: unknown;
}

export function joinStatus(resource: Resource, companion: Resource | undefined, types: TypesLookup): JoinedResource {
  return { metadata: resource.metadata, spec: types.shown(resource), ...(companion && { status: types.shown(companion) }) };
}

/**
 * Whether a status is about the resource as it is now: of its version, or of its spec, as far as the status says what it was computed
 * from.
 */
export function isAboutPresent(companion: Resource, { metadata, spec }: Resource): boolean {
  const { observedVersion, observedDigest } = (companion.spec ?? {}) as {
    readonly observedVersion?: unknown;
    readonly observedDigest?: unknown;
  };
  if (observedDigest !== undefined) return observedDigest === digest(spec);
  return observedVersion === undefined || observedVersion === metadata.version;
}

/** The type of the companion that holds a type's status. */
export function statusTypeOf(types: TypesLookup, type: string): string | undefined {
  const statusType = types.byType(type)?.statusType;
  return statusType === undefined || statusType === '' ? undefined : statusType;
}

/** Companions of all resources of a kind, by id. */
export async function companionsOf(state: State, types: TypesLookup, kind: Kind): Promise<ReadonlyMap<string, Resource>> {
  const statusType = statusTypeOf(types, kind.type);
  if (statusType === undefined) return new Map();
  const { items } = await state.list({ namespace: kind.namespace, type: statusType });
  return new Map(items.map((item) => [item.metadata.id, item]));
}

export async function companionOf(state: State, types: TypesLookup, { metadata }: Resource): Promise<Resource | undefined> {
  const statusType = statusTypeOf(types, metadata.type);
  if (statusType === undefined) return undefined;
  try {
    return await state.get({ namespace: metadata.namespace, type: statusType, id: metadata.id });
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
