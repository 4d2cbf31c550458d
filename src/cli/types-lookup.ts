import type { ResourceDefinitionSpec } from '../resource/index.ts';
import { metaNamespace, resourceDefinitionDefinition } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { UsageError } from './exit-codes.ts';

/** What is known of a type; `definition` is absent for a type that nobody described. */
export interface KnownType {
  readonly type: string;
  readonly defaultNamespace: string;
  readonly definition?: ResourceDefinitionSpec;
}

/** The types that a store describes. */
export class TypesLookup {
  readonly #definitions: readonly ResourceDefinitionSpec[];

  constructor(definitions: readonly ResourceDefinitionSpec[]) {
    this.#definitions = definitions;
  }

  static async read(state: State): Promise<TypesLookup> {
    const { items } = await state.list(resourceDefinitionDefinition.kind(metaNamespace));
    // Other programs describe types too; what does not fit is left out rather than in the way.
    return new TypesLookup(
      items.map((item) => item.spec).filter((spec) => typeof spec?.resourceType === 'string' && Array.isArray(spec.allAliases)),
    );
  }

  get all(): readonly ResourceDefinitionSpec[] {
    return this.#definitions;
  }

  /** By type or alias, in any case. UsageError names what there is. */
  find(name: string): KnownType {
    const lower = name.toLowerCase();
    const exact = this.#definitions.filter((definition) => definition.resourceType === name);
    const found =
      exact.length > 0
        ? exact
        : this.#definitions.filter(
            (definition) =>
              definition.resourceType.toLowerCase() === lower || definition.allAliases.some((alias) => alias.toLowerCase() === lower),
          );
    const [definition, ...others] = found;
    if (others.length > 0)
      throw new UsageError(`${name} is ambiguous: ${found.map((each) => each.resourceType).join(', ')}; write the whole type`);
    if (definition !== undefined) return { type: definition.resourceType, defaultNamespace: definition.defaultNamespace, definition };
    // A whole type needs no description.
    if (name.includes('.')) return { type: name, defaultNamespace: 'default' };
    const known = this.#definitions.map((each) => each.displayType.toLowerCase()).sort();
    throw new UsageError(
      `unknown type ${name}; ${known.length === 0 ? 'this store describes no types, so write the whole one' : `known are ${known.join(', ')}`}`,
    );
  }

  byType(type: string): ResourceDefinitionSpec | undefined {
    return this.#definitions.find((definition) => definition.resourceType === type);
  }
}
