import type { Kind, Metadata, Resource } from '../resource/index.ts';
import type { KindView } from './kind-view.ts';

/** What became of one resource; several steps may be one, but never two incarnations. */
export interface FeedChange {
  readonly old: Metadata | undefined;
  readonly value: Metadata | undefined;
  /** Was there already when the subscriber came. */
  readonly initial: boolean;
}

export interface FeedSubscriber {
  change(change: FeedChange): void;
  /**
   * Steps were left out. `lost`: the feed lost its place and found it again, anything may have changed. `coalesced`: of
   * what changed the first and the last state are told, but not those between.
   */
  resync(how: 'lost' | 'coalesced'): void;
  /** All that was there at the start has been told. */
  synced(): void;
}

/** All that the runtime knows of one kind, and who wants to be told of its changes. It keeps metadata only. */
export class KindFeed {
  readonly kind: Kind;
  /** Whole resources, where reads of this kind are cached. */
  readonly view: KindView | undefined;
  readonly #known = new Map<string, Metadata>();
  readonly #subscribers = new Set<FeedSubscriber>();
  #position = '';
  /** Ids that the contents being given hold, while they are given anew. */
  #given: Set<string> | undefined;
  #synced = false;

  constructor(kind: Kind, view?: KindView) {
    this.kind = kind;
    this.view = view;
  }

  /** The newest revision (or version) that came, as decimal text; empty: none yet. */
  get position(): string {
    return this.#position;
  }

  get synced(): boolean {
    return this.#synced;
  }

  /** Contents are being given, the first time or anew. */
  get filling(): boolean {
    return this.#given !== undefined;
  }

  get size(): number {
    return this.#known.size;
  }

  get subscribed(): boolean {
    return this.#subscribers.size > 0;
  }

  /** Metadata of all that is there. */
  known(): IterableIterator<Metadata> {
    return this.#known.values();
  }

  /** Tells what is there already, then what changes. Dispose to end it. */
  subscribe(subscriber: FeedSubscriber): Disposable {
    this.#subscribers.add(subscriber);
    for (const value of this.#known.values()) subscriber.change({ old: undefined, value, initial: true });
    if (this.#synced) subscriber.synced();
    return { [Symbol.dispose]: () => void this.#subscribers.delete(subscriber) };
  }

  /** A revision, or a version, has come. A `destroyed` may tell of an older version than what came before it. */
  moveTo(position: string): void {
    if (isBefore(this.#position, position)) this.#position = position;
  }

  /** All contents are about to be given (again). */
  beginContents(): void {
    this.#given = new Set();
  }

  /** All contents have been given: what was not among them is gone. */
  endContents(): void {
    const given = this.#given;
    this.#given = undefined;
    if (given !== undefined) {
      for (const id of [...this.#known.keys()]) if (!given.has(id)) this.remove(id);
    }
    this.view?.fill();
    if (this.#synced) return this.resync('lost');
    this.#synced = true;
    for (const subscriber of this.#subscribers) subscriber.synced();
  }

  put(resource: Resource): void {
    const { metadata } = resource;
    this.#given?.add(metadata.id);
    const old = this.#known.get(metadata.id);
    const told = old?.version === metadata.version && old.uid === metadata.uid;
    if (told && !this.filling) return;
    this.#known.set(metadata.id, metadata);
    this.view?.put(resource);
    // Contents that are given anew may be another store's, which has given the same version to something else. Everything wakes
    // after those; only what they hold must not be what it was.
    if (told) return;
    const initial = !this.#synced;
    if (old === undefined || old.uid === metadata.uid) return this.#tell({ old, value: metadata, initial });
    this.#tell({ old, value: undefined, initial: false });
    this.#tell({ old: undefined, value: metadata, initial });
  }

  remove(id: string): void {
    const old = this.#known.get(id);
    if (old === undefined) return;
    this.#known.delete(id);
    this.view?.remove(id);
    this.#tell({ old, value: undefined, initial: false });
  }

  resync(how: 'lost' | 'coalesced'): void {
    for (const subscriber of this.#subscribers) subscriber.resync(how);
  }

  #tell(change: FeedChange): void {
    for (const subscriber of this.#subscribers) subscriber.change(change);
  }
}

/** Compares revisions, or versions of one type, as decimal text: no number is large enough for all of them. */
export function isBefore(left: string, right: string): boolean {
  return left.length === right.length ? left < right : left.length < right.length;
}
