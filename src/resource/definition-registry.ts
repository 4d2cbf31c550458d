import type { AnyResourceDefinition, ResourceDefinition } from './definition.ts';
import { SteadystateError } from './errors.ts';

/** The definitions that one program knows, by type and by alias in any case. */
export class DefinitionRegistry {
  readonly #byType = new Map<string, ResourceDefinition>();
  readonly #byName = new Map<string, ResourceDefinition[]>();

  constructor(definitions: Iterable<AnyResourceDefinition> = []) {
    for (const definition of definitions) this.add(definition);
  }

  /** Conflict when another definition of the same type is there. */
  add<Spec, Input>(definition: ResourceDefinition<Spec, Input>): void {
    const added = definition as unknown as ResourceDefinition;
    const known = this.#byType.get(added.type);
    if (known === added) return;
    if (known !== undefined) throw new SteadystateError('Conflict', `the type ${added.type} is defined twice`, { reason: 'alreadyExists' });
    this.#byType.set(added.type, added);
    for (const name of allNames(added)) {
      const others = this.#byName.get(name);
      if (others === undefined) this.#byName.set(name, [added]);
      else others.push(added);
    }
  }

  get(type: string): ResourceDefinition | undefined {
    return this.#byType.get(type);
  }

  /** By type or alias, in any case. Invalid when several types answer to that name. */
  find(name: string): ResourceDefinition | undefined {
    const exact = this.#byType.get(name);
    if (exact !== undefined) return exact;
    const found = this.#byName.get(name.toLowerCase()) ?? [];
    if (found.length > 1) {
      throw new SteadystateError('Invalid', `${name} is ambiguous: ${found.map((definition) => definition.type).join(', ')}`);
    }
    return found[0];
  }

  [Symbol.iterator](): IterableIterator<ResourceDefinition> {
    return this.#byType.values();
  }
}

/** Every name that a type answers to, in lower case: its type, plural, singular and aliases. */
export function allNames(definition: ResourceDefinition): ReadonlySet<string> {
  const plural = definition.type.slice(0, definition.type.indexOf('.'));
  return new Set([definition.type, plural, definition.displayType, ...definition.aliases].map((name) => name.toLowerCase()));
}
