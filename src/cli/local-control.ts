import { hostDefinitions } from '../host/index.ts';
import type { AnyResourceDefinition, Pointer, Readiness, Resource } from '../resource/index.ts';
import { DefinitionRegistry, findError, isNotFoundError } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { resourceReadiness } from '../workload/index.ts';

/** The definitions that this program brings along. */
export function localRegistry(more: readonly AnyResourceDefinition[] = []): DefinitionRegistry {
  return new DefinitionRegistry([...(hostDefinitions as unknown as readonly AnyResourceDefinition[]), ...more]);
}

export interface LocalProblem {
  readonly index: number;
  readonly path: string;
  readonly message: string;
}

/** Checks a bundle by the definitions that are known here. */
export async function validateLocally(
  resources: readonly Resource[],
  registry: DefinitionRegistry = localRegistry(),
): Promise<{ readonly problems: readonly LocalProblem[]; readonly resources: readonly Resource[] }> {
  const problems: LocalProblem[] = [];
  const valid: Resource[] = [];
  resources.forEach((resource, index) => {
    try {
      valid.push(registry.get(resource.metadata.type)?.from(resource) ?? resource);
    } catch (error) {
      const found = findError(error);
      if (found === undefined) throw error;
      problems.push(
        ...(found.issues.length === 0 ? [{ index, path: '', message: found.message }] : found.issues.map((issue) => ({ index, ...issue }))),
      );
    }
  });
  return { problems, resources: problems.length > 0 ? [] : valid };
}

/** Whether a resource is ready, by the definitions that are known here. `undefined`: its type cannot tell. */
export async function readinessOf(
  state: Pick<State, 'get'>,
  pointer: Pointer,
  registry: DefinitionRegistry = localRegistry(),
): Promise<{ readonly readiness: Readiness; readonly version: string } | undefined> {
  const definition = registry.get(pointer.type);
  if (definition === undefined || (definition.ready === undefined && definition.statusType === undefined)) return undefined;
  const resource = await find(state, pointer);
  if (resource === undefined) return { readiness: { status: 'NotFound', reason: 'NotFound', message: 'does not exist' }, version: '' };
  const companion =
    definition.statusType === undefined
      ? undefined
      : await find(state, { namespace: pointer.namespace, type: definition.statusType, id: pointer.id });
  return { readiness: resourceReadiness(definition, resource, companion), version: resource.metadata.version };
}

async function find(state: Pick<State, 'get'>, pointer: Pointer): Promise<Resource | undefined> {
  try {
    return await state.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
