import type { Environment } from '../environment/index.ts';
import type { Resource, ResourceDefinition, ResourceDefinitionSpec } from '../resource/index.ts';
import { describeDefinition, metaNamespace, namespaceDefinition, resourceDefinitionDefinition } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { visibleSpec } from '../wire/index.ts';
import { UsageError } from './exit-codes.ts';
import { masked } from './output/mask.ts';

/** What is known of a type; `definition` is absent for a type that nobody described. */
export interface KnownType {
  readonly type: string;
  readonly defaultNamespace: string;
  readonly definition?: ResourceDefinitionSpec;
}

/** Kinds that every store may hold, whether it describes them or not. */
const wellKnown: readonly ResourceDefinitionSpec[] = [namespaceDefinition, resourceDefinitionDefinition].map(
  (definition) => describeDefinition<unknown, unknown>(definition as ResourceDefinition<unknown, unknown>).spec,
);

/** The types that a store describes. */
export class TypesLookup {
  readonly #definitions: readonly ResourceDefinitionSpec[];
  readonly #salt: string;

  /** `environment`: masks of one lookup can be compared with each other only. */
  constructor(definitions: readonly ResourceDefinitionSpec[], environment: Pick<Environment, 'id'>) {
    this.#definitions = definitions;
    this.#salt = environment.id();
  }

  static async read(state: State, environment: Pick<Environment, 'id'>): Promise<TypesLookup> {
    const { items } = await state.list(resourceDefinitionDefinition.kind(metaNamespace));
    // Other programs describe types too; what does not fit is left out rather than in the way.
    return new TypesLookup(
      items.map((item) => item.spec).filter((spec) => typeof spec?.resourceType === 'string' && Array.isArray(spec.allAliases)),
      environment,
    );
  }

  get all(): readonly ResourceDefinitionSpec[] {
    return this.#definitions;
  }

  /** All that a name may mean: the whole type, or in any case a type or alias. */
  named(name: string): readonly ResourceDefinitionSpec[] {
    const lower = name.toLowerCase();
    const exact = this.#definitions.filter((definition) => definition.resourceType === name);
    if (exact.length > 0) return exact;
    const meant = (definition: ResourceDefinitionSpec): boolean =>
      definition.resourceType.toLowerCase() === lower || definition.allAliases.some((alias) => alias.toLowerCase() === lower);
    const found = this.#definitions.filter(meant);
    return found.length > 0 ? found : wellKnown.filter(meant);
  }

  /** By type or alias, in any case. UsageError names what there is. */
  find(name: string): KnownType {
    const lower = name.toLowerCase();
    const found = this.named(name);
    const [definition, ...others] = found;
    if (others.length > 0)
      throw new UsageError(`${name} is ambiguous: ${found.map((each) => each.resourceType).join(', ')}; write the whole type`);
    if (definition !== undefined) return { type: definition.resourceType, defaultNamespace: definition.defaultNamespace, definition };
    // A whole type needs no description.
    if (name.includes('.') && !name.includes(',')) return { type: name, defaultNamespace: 'default' };
    if (name.includes(',')) throw new UsageError(`${name}: one type at a time; run the command for each`);
    if (lower === 'all') throw new UsageError('all: name a type; those that there are: steadystate types');
    const known = this.#definitions.map((each) => each.displayType.toLowerCase()).sort();
    const meant = nearest(lower, [
      ...new Set(this.#definitions.flatMap(({ allAliases }) => allAliases.map((alias) => alias.toLowerCase()))),
    ]);
    throw new UsageError(
      `unknown type ${name}; ${known.length === 0 ? 'this store describes no types, so write the whole one' : `known are ${known.join(', ')}`}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    );
  }

  byType(type: string): ResourceDefinitionSpec | undefined {
    return this.#definitions.find((definition) => definition.resourceType === type);
  }

  /** A resource's spec as people may see it: values of a sensitive type are masked. */
  shown({ metadata, spec }: Pick<Resource, 'metadata' | 'spec'>): unknown {
    return this.byType(metadata.type)?.sensitivity === 'sensitive' ? masked(spec, this.#salt) : visibleSpec(spec);
  }
}

/** The word that was probably meant: at most a third of it is wrong. */
function nearest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .filter((candidate) => Math.abs(candidate.length - word.length) <= 2 && word.length <= 100)
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .sort((left, right) => left.distance - right.distance);
  const [first] = ranked;
  return first !== undefined && first.distance <= Math.min(2, first.candidate.length / 3) ? first.candidate : undefined;
}

/** How many letters have to be added, taken away, changed or swapped with their neighbour. */
function editDistance(left: string, right: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: right.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const changed = (last[j - 1] as number) + (left[i - 1] === right[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1] ? (before[j - 2] as number) + 1 : changed;
      row.push(Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, changed, swapped));
    }
    [before, last] = [last, row];
  }
  return last[right.length] as number;
}
