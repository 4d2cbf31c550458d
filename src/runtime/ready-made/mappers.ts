import type { Kind, Pointer, Resource, ResourceDefinition } from '../../resource/index.ts';
import { isNotFoundError } from '../../resource/index.ts';
import type { ControllerContext, MappedInput } from '../controller.ts';

/** Turns a change of a mapped input into keys of the primary input. */
export type Mapper = (context: ControllerContext, input: MappedInput) => readonly Pointer[] | Promise<readonly Pointer[]>;

/** The primary of the same id. */
export function mapSameId({ namespace, type }: Kind): Mapper {
  return (_context, { metadata }) => [{ namespace, type, id: metadata.id }];
}

/** The primary whose id a label holds; none without that label. */
export function mapLabelValue(label: string, { namespace, type }: Kind): Mapper {
  return (_context, { metadata }) => {
    const id = Object.hasOwn(metadata.labels, label) ? metadata.labels[label] : undefined;
    return id === undefined ? [] : [{ namespace, type, id }];
  };
}

/** Nothing: the input is read, but wakes nobody. */
export const mapNone: Mapper = () => [];

/** Maps by the whole resource, typed; what is gone is mapped to nothing. */
export function mapTyped<Spec>(
  definition: Pick<ResourceDefinition<Spec, never>, 'from'>,
  map: (resource: Resource<Spec>, context: ControllerContext) => readonly Pointer[] | Promise<readonly Pointer[]>,
): Mapper {
  return async (context, { metadata, destroyed }) => {
    if (destroyed) return [];
    try {
      return await map(definition.from(await context.get(metadata)), context);
    } catch (error) {
      if (isNotFoundError(error)) return [];
      throw error;
    }
  };
}
