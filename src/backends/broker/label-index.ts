import type { Resource } from '../../resource/index.ts';

/** Keys that are indexed at once; the one that was asked for the longest ago goes first. */
const maximumKeys = 8;

/**
 * Where the resources with a label are. A key is indexed when somebody asks for it first, and kept up to date by every write
 * from then on; nothing is kept for keys that nobody asks for.
 */
export class LabelIndex<Entry extends { readonly value: Resource | undefined }> {
  readonly #keys = new Map<string, Map<string, Set<Entry>>>();

  /** Entries whose label `key` has one of the values. `all` is read when the key is new here. */
  find(key: string, values: readonly string[], all: Iterable<Entry>): readonly Set<Entry>[] {
    let byValue = this.#keys.get(key);
    if (byValue === undefined) {
      byValue = new Map();
      for (const entry of all) add(byValue, labelOf(entry.value, key), entry);
      const [oldest] = this.#keys.keys();
      if (oldest !== undefined && this.#keys.size >= maximumKeys) this.#keys.delete(oldest);
    } else this.#keys.delete(key);
    this.#keys.set(key, byValue);
    const found: Set<Entry>[] = [];
    for (const value of new Set(values)) {
      const entries = byValue.get(value);
      if (entries !== undefined) found.push(entries);
    }
    return found;
  }

  /** The value of an entry has changed; `undefined`: it was not there, or is gone. */
  moved(entry: Entry, old: Resource | undefined, value: Resource | undefined): void {
    if (this.#keys.size === 0) return;
    for (const [key, byValue] of this.#keys) {
      const before = labelOf(old, key);
      const after = labelOf(value, key);
      if (before === after) continue;
      if (before !== undefined) {
        const entries = byValue.get(before);
        entries?.delete(entry);
        if (entries?.size === 0) byValue.delete(before);
      }
      add(byValue, after, entry);
    }
  }
}

function labelOf(resource: Resource | undefined, key: string): string | undefined {
  const labels = resource?.metadata.labels;
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function add<Entry>(byValue: Map<string, Set<Entry>>, label: string | undefined, entry: Entry): void {
  if (label === undefined) return;
  const entries = byValue.get(label);
  if (entries === undefined) byValue.set(label, new Set([entry]));
  else entries.add(entry);
}
