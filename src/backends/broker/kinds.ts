import type { Kind } from '../../resource/index.ts';
import { compareIds } from '../../resource/index.ts';
import { Collection } from './collection.ts';

/** The collections of a store, by kind. Reading makes none; one without contents, history and watchers is forgotten. */
export class Kinds {
  readonly #byNamespace = new Map<string, Map<string, Collection>>();
  readonly #baseRevision: number;
  /** Programs ask for the same kind again and again. */
  #last: Collection | undefined;

  /** `baseRevision`: where the store began; a kind without commits since then has lost none of them. */
  constructor(baseRevision: number) {
    this.#baseRevision = baseRevision;
  }

  /** What is no kind at all has no collection: who asks then says what is wrong with it. */
  find(kind: Kind): Collection | undefined {
    if (typeof kind !== 'object' || kind === null) return undefined;
    const last = this.#last;
    if (last !== undefined && last.kind.type === kind.type && last.kind.namespace === kind.namespace) return last;
    const found = this.#byNamespace.get(kind.namespace)?.get(kind.type);
    if (found !== undefined) this.#last = found;
    return found;
  }

  claim(kind: Kind): Collection {
    const found = this.find(kind);
    if (found !== undefined) return found;
    let types = this.#byNamespace.get(kind.namespace);
    if (types === undefined) {
      types = new Map();
      this.#byNamespace.set(kind.namespace, types);
    }
    const collection = new Collection({ namespace: kind.namespace, type: kind.type }, this.#baseRevision);
    types.set(kind.type, collection);
    return collection;
  }

  /** The namespaces in which readers see resources of a type, sorted. */
  namespacesOf(type: string): readonly string[] {
    const found: string[] = [];
    for (const [namespace, types] of this.#byNamespace) if ((types.get(type)?.size ?? 0) > 0) found.push(namespace);
    return found.sort(compareIds);
  }

  release(collection: Collection): void {
    if (!collection.idle) return;
    const { namespace, type } = collection.kind;
    const types = this.#byNamespace.get(namespace);
    if (types?.get(type) !== collection) return;
    if (this.#last === collection) this.#last = undefined;
    types.delete(type);
    if (types.size === 0) this.#byNamespace.delete(namespace);
  }
}
