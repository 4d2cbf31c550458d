import type { Environment, Logger } from '../environment/index.ts';
import type { Kind, Metadata } from '../resource/index.ts';
import { visibleText } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { unsupported } from '../state/index.ts';
import type { FeedSubscriber } from './kind-feed.ts';
import { keepWatching, WatchBackoff } from './watch-backoff.ts';

export interface TypeFeedOptions {
  readonly core: CoreState;
  readonly environment: Environment;
  readonly log: Logger;
  readonly type: string;
  /** Subscribes to one kind; whoever wants the same one shares its watch. */
  readonly subscribe: (kind: Kind, subscriber: FeedSubscriber) => Disposable;
  readonly known: (kind: Kind) => Iterable<Metadata>;
}

/** One type in all namespaces: a watch of the namespaces that have some of it, and a feed of each. */
export class TypeFeed {
  readonly #options: TypeFeedOptions;
  readonly #backoff: WatchBackoff;
  readonly #namespaces = new Set<string>();
  readonly #subscriptions = new Set<Everywhere>();
  readonly #stop = new AbortController();
  /** The namespaces that were there at the start are known. */
  #filled = false;

  constructor(options: TypeFeedOptions) {
    this.#options = options;
    this.#backoff = new WatchBackoff(options.environment);
  }

  get subscribed(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** Metadata of all that is known of the type. */
  *known(): IterableIterator<Metadata> {
    for (const namespace of this.#namespaces) yield* this.#options.known({ namespace, type: this.#options.type });
  }

  /** Tells what is there already, then what changes, in whatever namespace. Dispose to end it. */
  subscribe(subscriber: FeedSubscriber): Disposable {
    const subscription = new Everywhere(this.#options, subscriber);
    this.#subscriptions.add(subscription);
    for (const namespace of this.#namespaces) subscription.appeared(namespace);
    if (this.#filled) subscription.filled();
    return {
      [Symbol.dispose]: () => {
        this.#subscriptions.delete(subscription);
        subscription.end();
      },
    };
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Runs until it is stopped, or the store is closed. */
  run(): Promise<void> {
    const type = visibleText(this.#options.type);
    return keepWatching({
      backoff: this.#backoff,
      log: this.#options.log,
      signal: this.#stop.signal,
      wakes: () => `new namespaces of ${type}`,
      what: () => `the namespaces of ${type}`,
      watch: () => this.#watch(),
    });
  }

  /** Watches until that ends; answers why, if it is known. */
  async #watch(): Promise<unknown> {
    const { core, type } = this.#options;
    if (core.watchNamespaces === undefined) throw unsupported('the store cannot tell in which namespaces a type has resources');
    const watch = await core.watchNamespaces(type, { signal: this.#stop.signal });
    /** Those that are being told at the start. */
    let given: Set<string> | undefined = new Set();
    let failure: unknown;
    await watch.drain((batch) => {
      for (const event of batch) {
        if (event.type === 'errored') failure = event.error;
        else if (event.type === 'created') {
          given?.add(event.resource.metadata.id);
          this.#appeared(event.resource.metadata.id);
        } else if (event.type === 'destroyed') {
          given?.delete(event.resource.metadata.id);
          this.#vanished(event.resource.metadata.id);
        } else if (event.type === 'bootstrapped') {
          for (const namespace of [...this.#namespaces]) if (given?.has(namespace) === false) this.#vanished(namespace);
          given = undefined;
          this.#backoff.reset();
          this.#filled = true;
          for (const subscription of this.#subscriptions) subscription.filled();
        }
      }
    });
    return failure;
  }

  #appeared(namespace: string): void {
    this.#namespaces.add(namespace);
    for (const subscription of this.#subscriptions) subscription.appeared(namespace);
  }

  #vanished(namespace: string): void {
    if (!this.#namespaces.delete(namespace)) return;
    for (const subscription of this.#subscriptions) subscription.vanished(namespace);
  }
}

/** One namespace of a subscription. */
interface Place {
  subscription: Disposable | undefined;
  synced: boolean;
  /** How many resources the subscriber was told of. */
  count: number;
  /** The store says that it is empty: it ends once the subscriber knows that too. */
  leaving: boolean;
}

/** What one subscriber gets: the feeds of all namespaces as if they were one. */
class Everywhere {
  readonly #options: TypeFeedOptions;
  readonly #subscriber: FeedSubscriber;
  readonly #places = new Map<string, Place>();
  #filled = false;
  #synced = false;
  #ended = false;

  constructor(options: TypeFeedOptions, subscriber: FeedSubscriber) {
    this.#options = options;
    this.#subscriber = subscriber;
  }

  appeared(namespace: string): void {
    const known = this.#places.get(namespace);
    if (known !== undefined) {
      known.leaving = false;
      return;
    }
    const place: Place = { subscription: undefined, synced: false, count: 0, leaving: false };
    this.#places.set(namespace, place);
    const isOurs = (): boolean => !this.#ended && this.#places.get(namespace) === place;
    place.subscription = this.#options.subscribe(
      { namespace, type: this.#options.type },
      {
        change: (change) => {
          if (!isOurs()) return;
          place.count += (change.value === undefined ? 0 : 1) - (change.old === undefined ? 0 : 1);
          // Only what was there when the subscriber came is initial; a namespace that came later is news.
          this.#subscriber.change({ ...change, initial: change.initial && !this.#synced });
          this.#leave(namespace, place);
        },
        resync: (how) => {
          if (isOurs()) this.#subscriber.resync(how);
        },
        synced: () => {
          place.synced = true;
          this.#check();
        },
      },
    );
  }

  vanished(namespace: string): void {
    const place = this.#places.get(namespace);
    if (place === undefined) return;
    place.leaving = true;
    this.#leave(namespace, place);
  }

  /** The namespaces that were there at the start have all been told. */
  filled(): void {
    this.#filled = true;
    this.#check();
  }

  end(): void {
    this.#ended = true;
    for (const { subscription } of this.#places.values()) subscription?.[Symbol.dispose]();
    this.#places.clear();
  }

  #leave(namespace: string, place: Place): void {
    if (!place.leaving || place.count > 0) return;
    this.#places.delete(namespace);
    place.subscription?.[Symbol.dispose]();
    this.#check();
  }

  #check(): void {
    if (this.#synced || !this.#filled || this.#ended) return;
    for (const { synced } of this.#places.values()) if (!synced) return;
    this.#synced = true;
    this.#subscriber.synced();
  }
}
