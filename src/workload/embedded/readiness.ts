import type { Readiness, Resource, ResourceDefinition } from '../../resource/index.ts';

/** Where a companion says which version of its resource it was computed from. */
interface CompanionSpec {
  readonly observedVersion?: unknown;
  readonly ready?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly conditions?: unknown;
}

/**
 * Whether a resource on the embedded store is ready: its definition's own rule, else what its status companion says of
 * the present version, else that it exists. A definition with a companion is in progress until there is one.
 */
export function resourceReadiness(
  definition: Pick<ResourceDefinition, 'ready' | 'statusType'> | undefined,
  resource: Resource,
  companion: Resource | undefined,
): Readiness {
  if (resource.metadata.phase === 'tearingDown') return { status: 'Terminating', reason: 'Terminating', message: 'is being torn down' };
  const ruled = definition?.ready?.(resource, companion?.spec);
  if (typeof ruled === 'object') return ruled;
  if (ruled !== undefined) return ruled ? current : { status: 'InProgress', reason: 'NotReady', message: '' };
  if (definition?.statusType === undefined) return current;
  if (companion === undefined) return { status: 'InProgress', reason: 'NoStatus', message: 'its controller has not looked at it yet' };
  const spec = (typeof companion.spec === 'object' && companion.spec !== null ? companion.spec : {}) as CompanionSpec;
  if (spec.observedVersion !== undefined && spec.observedVersion !== resource.metadata.version) {
    return { status: 'InProgress', reason: 'NotObserved', message: 'its controller has not seen the present version yet' };
  }
  if (Array.isArray(spec.conditions)) return fromConditions(spec.conditions as readonly Record<string, unknown>[]);
  if (typeof spec.ready === 'boolean')
    return spec.ready ? current : { status: 'InProgress', reason: text(spec.reason, 'NotReady'), message: text(spec.message, '') };
  return current;
}

const current: Readiness = Object.freeze({ status: 'Current', reason: 'Current', message: '' });

function fromConditions(conditions: readonly Record<string, unknown>[]): Readiness {
  const find = (type: string): Record<string, unknown> | undefined => conditions.find((condition) => condition.type === type);
  const stalled = find('Stalled');
  if (stalled?.status === 'True') return { status: 'Failed', reason: text(stalled.reason, 'Stalled'), message: text(stalled.message, '') };
  const ready = find('Ready');
  if (ready?.status === 'True') return current;
  return { status: 'InProgress', reason: text(ready?.reason, 'NotReady'), message: text(ready?.message, '') };
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
