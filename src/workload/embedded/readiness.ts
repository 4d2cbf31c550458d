import type { Readiness, Resource, ResourceDefinition } from '../../resource/index.ts';
import { digest, thrownText } from '../../resource/index.ts';
import { checkedReadiness } from '../answers.ts';

/** What a companion may say of its resource. One of the first two tells what it was computed from. */
interface CompanionSpec {
  /** The resource's version. */
  readonly observedVersion?: unknown;
  /** `digest` of the resource's spec: for companions that need not be written when only labels change. */
  readonly observedDigest?: unknown;
  readonly ready?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly conditions?: unknown;
}

/**
 * Whether a resource on the embedded store is ready: its definition's own rule, else what its status companion says of
 * the present spec, else that it exists. A definition with a companion is in progress until there is one that was computed
 * from this spec.
 */
export function resourceReadiness(
  definition: Pick<ResourceDefinition, 'ready' | 'statusType'> | undefined,
  resource: Resource,
  companion: Resource | undefined,
): Readiness {
  if (resource.metadata.phase === 'tearingDown') return { status: 'Terminating', reason: 'Terminating', message: 'is being torn down' };
  const ruled = byDefinition(definition, resource, companion);
  if (typeof ruled === 'object') return ruled;
  if (ruled !== undefined) return ruled ? current : inProgress('NotReady', '');
  if (definition?.statusType === undefined) return current;
  if (companion === undefined) return inProgress('NoStatus', 'its controller has not looked at it yet');
  const spec = (typeof companion.spec === 'object' && companion.spec !== null ? companion.spec : {}) as CompanionSpec;
  if (spec.observedVersion === undefined && spec.observedDigest === undefined)
    return inProgress(
      'NotObserved',
      `${companion.metadata.type} says neither observedVersion nor observedDigest, so it may be about an older spec`,
    );
  if (!isOfPresent(spec, resource)) return inProgress('NotObserved', 'its controller has not seen the present version yet');
  if (Array.isArray(spec.conditions)) return fromConditions(spec.conditions as readonly Record<string, unknown>[]);
  if (typeof spec.ready === 'boolean') return spec.ready ? current : inProgress(text(spec.reason, 'NotReady'), text(spec.message, ''));
  return current;
}

/** A rule that throws, or answers what is none (on a spec that was written past its schema, say) fails this one resource. */
function byDefinition(
  definition: Pick<ResourceDefinition, 'ready'> | undefined,
  resource: Resource,
  companion: Resource | undefined,
): boolean | Readiness | undefined {
  try {
    const ruled = definition?.ready?.(resource, companion?.spec);
    return ruled === undefined || typeof ruled === 'boolean' ? ruled : checkedReadiness(ruled);
  } catch (error) {
    return { status: 'Failed', reason: 'RuleFailed', message: thrownText(error) };
  }
}

function isOfPresent({ observedVersion, observedDigest }: CompanionSpec, resource: Resource): boolean {
  if (observedDigest !== undefined) return observedDigest === digest(resource.spec);
  return observedVersion === resource.metadata.version;
}

const current: Readiness = Object.freeze({ status: 'Current', reason: 'Current', message: '' });

function inProgress(reason: string, message: string): Readiness {
  return { status: 'InProgress', reason, message };
}

function fromConditions(conditions: readonly Record<string, unknown>[]): Readiness {
  const find = (type: string): Record<string, unknown> | undefined => conditions.find((condition) => condition.type === type);
  const stalled = find('Stalled');
  if (stalled?.status === 'True') return { status: 'Failed', reason: text(stalled.reason, 'Stalled'), message: text(stalled.message, '') };
  const ready = find('Ready');
  if (ready?.status === 'True') return current;
  return inProgress(text(ready?.reason, 'NotReady'), text(ready?.message, ''));
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
