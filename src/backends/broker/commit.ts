import type { Resource } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import type { Bookmarks } from './bookmark.ts';

/** One committed write: at least one of the two values is there. */
export class Commit {
  readonly revision: number;
  readonly id: string;
  /** The value before; `undefined`: it was not there. */
  readonly old: Resource | undefined;
  /** The value after; `undefined`: it is gone. */
  readonly value: Resource | undefined;
  #event: StateEvent | undefined;

  constructor(revision: number, id: string, old: Resource | undefined, value: Resource | undefined) {
    this.revision = revision;
    this.id = id;
    this.old = old;
    this.value = value;
  }

  /** The event that every watcher without a query shares. */
  event(bookmarks: Bookmarks): StateEvent {
    this.#event ??= makeEvent(this.old, this.value, this.revision, bookmarks);
    return this.#event;
  }
}

/** A shared, frozen event; its bookmark is made when somebody asks for it. */
class PlacedEvent {
  readonly type: string;
  readonly revision: number;
  readonly #bookmarks: Bookmarks;
  #bookmark: Bookmark | undefined;

  constructor(type: string, revision: number, bookmarks: Bookmarks) {
    this.type = type;
    this.revision = revision;
    this.#bookmarks = bookmarks;
  }

  get bookmark(): Bookmark {
    this.#bookmark ??= this.#bookmarks.at(this.revision);
    return this.#bookmark;
  }
}

class ResourceEvent extends PlacedEvent {
  readonly resource: Resource;
  constructor(type: 'created' | 'destroyed', resource: Resource, revision: number, bookmarks: Bookmarks) {
    super(type, revision, bookmarks);
    this.resource = resource;
    Object.freeze(this);
  }
}

class UpdatedResourceEvent extends PlacedEvent {
  readonly resource: Resource;
  readonly old: Resource;
  constructor(resource: Resource, old: Resource, revision: number, bookmarks: Bookmarks) {
    super('updated', revision, bookmarks);
    this.resource = resource;
    this.old = old;
    Object.freeze(this);
  }
}

/** The event of a change from `old` to `value`, safe to resume from. */
export function makeEvent(old: Resource | undefined, value: Resource | undefined, revision: number, bookmarks: Bookmarks): StateEvent {
  if (value === undefined) return new ResourceEvent('destroyed', old as Resource, revision, bookmarks) as unknown as StateEvent;
  if (old === undefined) return new ResourceEvent('created', value, revision, bookmarks) as unknown as StateEvent;
  return new UpdatedResourceEvent(value, old, revision, bookmarks) as unknown as StateEvent;
}

/** A `created` or `destroyed` event for a change that only looks like one through a query. */
export function transitionEvent(type: 'created' | 'destroyed', resource: Resource, revision: number, bookmarks: Bookmarks): StateEvent {
  return new ResourceEvent(type, resource, revision, bookmarks) as unknown as StateEvent;
}
