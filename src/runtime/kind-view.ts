import type { Resource, ResourceQuery } from '../resource/index.ts';
import { compareIds, compileQuery } from '../resource/index.ts';

/** The cached contents of one kind, sorted by the bytes of their ids. Values are frozen and shared. */
export class KindView {
  readonly #resources = new Map<string, Resource>();
  readonly #ids: string[] = [];
  /** The list of everything, until the next change. */
  #all: readonly Resource[] | undefined;
  #filled = false;

  /** Everything that was there at the start is in. */
  get filled(): boolean {
    return this.#filled;
  }

  get(id: string): Resource | undefined {
    return this.#resources.get(id);
  }

  list(query: ResourceQuery): readonly Resource[] {
    this.#all ??= Object.freeze(this.#ids.map((id) => this.#resources.get(id) as Resource));
    const matches = compileQuery(query);
    return matches === undefined ? this.#all : Object.freeze(this.#all.filter((resource) => matches(resource.metadata)));
  }

  fill(): void {
    this.#filled = true;
  }

  put(resource: Resource): void {
    const { id } = resource.metadata;
    if (!this.#resources.has(id)) this.#ids.splice(this.#place(id), 0, id);
    this.#resources.set(id, resource);
    this.#all = undefined;
  }

  remove(id: string): void {
    if (!this.#resources.delete(id)) return;
    this.#ids.splice(this.#place(id), 1);
    this.#all = undefined;
  }

  /** Where an id is, or belongs. Contents come sorted, so the end is looked at first. */
  #place(id: string): number {
    const last = this.#ids.at(-1);
    if (last === undefined || compareIds(last, id) < 0) return this.#ids.length;
    let low = 0;
    let high = this.#ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareIds(this.#ids[middle] as string, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
