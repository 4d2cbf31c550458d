import type { Resource } from '../../resource/index.ts';

/** A change that the store must have committed: what every watcher's events follow from. */
export interface ModelCommit {
  readonly id: string;
  readonly old: Resource | undefined;
  readonly value: Resource | undefined;
}

export interface ModelUpdate {
  readonly owner: string;
  readonly version: string;
  readonly phase: 'running' | 'tearingDown';
  readonly expectedPhase: 'running' | 'tearingDown' | 'any';
}

/** The state that a store should have: a map, and the order of commits. Says how each call must end. */
export class StateModel {
  readonly resources = new Map<string, Resource>();
  readonly commits: ModelCommit[] = [];
  /** Every version that was ever seen of an id. */
  readonly versions = new Map<string, string[]>();
  readonly uids = new Map<string, string[]>();

  commit(id: string, value: Resource | undefined): void {
    this.commits.push({ id, old: this.resources.get(id), value });
    if (value === undefined) this.resources.delete(id);
    else {
      this.resources.set(id, value);
      this.versions.set(id, [...(this.versions.get(id) ?? []), value.metadata.version]);
      this.uids.set(id, [...(this.uids.get(id) ?? []), value.metadata.uid]);
    }
  }

  /** How a create must end: a reason, or `undefined` for success. */
  create(id: string): string | undefined {
    return this.resources.has(id) ? 'alreadyExists' : undefined;
  }

  update(id: string, call: ModelUpdate): string | undefined {
    const stored = this.resources.get(id)?.metadata;
    if (stored === undefined) return 'NotFound';
    if (call.owner !== stored.owner) return 'owner';
    if (call.version !== stored.version) return 'version';
    if (call.expectedPhase !== 'any' && call.expectedPhase !== stored.phase) return 'phase';
    return stored.phase === 'tearingDown' && call.phase === 'running' ? 'phase' : undefined;
  }

  destroy(id: string, call: { readonly owner: string; readonly uid?: string | undefined }): string | undefined {
    const stored = this.resources.get(id)?.metadata;
    if (stored === undefined) return 'NotFound';
    if (call.owner !== stored.owner) return 'owner';
    if (call.uid !== undefined && call.uid !== stored.uid) return 'incarnation';
    return stored.finalizers.length > 0 ? 'pendingFinalizers' : undefined;
  }

  teardown(id: string, owner: string): string | undefined {
    const stored = this.resources.get(id)?.metadata;
    if (stored === undefined) return 'NotFound';
    return stored.phase === 'running' && stored.owner !== owner ? 'owner' : undefined;
  }

  /** The resources that match, in order. */
  list(matches: (resource: Resource) => boolean): Resource[] {
    return [...this.resources.keys()]
      .sort()
      .map((id) => this.resources.get(id) as Resource)
      .filter(matches);
  }

  /** The events that a watcher must get for the commits after a place, as comparable text. */
  eventsAfter(place: number, matches: (resource: Resource) => boolean): string[] {
    const events: string[] = [];
    for (const { id, old, value } of this.commits.slice(place)) {
      const before = old !== undefined && matches(old);
      const after = value !== undefined && matches(value);
      if (before && after) events.push(`updated ${id} ${value.metadata.version} over ${old.metadata.version}`);
      else if (after) events.push(`created ${id} ${value.metadata.version}`);
      // What stops to match shows its new value; what is gone its last one.
      else if (before) events.push(`destroyed ${id} ${(value ?? old).metadata.version}`);
    }
    return events;
  }
}
