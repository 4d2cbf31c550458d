import type { Environment, Logger } from '../environment/index.ts';
import type { Kind, Metadata } from '../resource/index.ts';
import { kindText } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import type { AnyNamespace } from './any-namespace.ts';
import { isAnyNamespace } from './any-namespace.ts';
import { Cache } from './cache.ts';
import { FeedWatch } from './feed-watch.ts';
import { kindKeyOf } from './keys.ts';
import type { FeedSubscriber } from './kind-feed.ts';
import { KindFeed } from './kind-feed.ts';
import { KindView } from './kind-view.ts';
import { TypeFeed } from './type-feed.ts';

/** A kind, or a type wherever it is. */
export interface WantedKind {
  readonly namespace: string | AnyNamespace;
  readonly type: string;
}

interface Watched {
  readonly feed: KindFeed;
  /** Of an uncached kind, which has a watch of its own. */
  readonly watch: FeedWatch | undefined;
}

/** The kinds that are watched, each once, whoever wants them. */
export class Feeds {
  readonly cache: Cache;
  readonly #options: { readonly core: CoreState; readonly environment: Environment; readonly log: Logger };
  readonly #cached: readonly KindFeed[];
  readonly #watched = new Map<string, Watched>();
  /** Types that somebody wants in any namespace. */
  readonly #types = new Map<string, TypeFeed>();
  readonly #running = new Map<FeedWatch | TypeFeed, Promise<void>>();
  #started = false;

  constructor(options: {
    readonly core: CoreState;
    readonly environment: Environment;
    readonly log: Logger;
    readonly cachedKinds: readonly Kind[];
  }) {
    this.#options = options;
    this.#cached = options.cachedKinds.map(({ namespace, type }) => new KindFeed({ namespace, type }, new KindView()));
    this.cache = new Cache(this.#cached, options.core.capabilities.globalRevision);
    for (const feed of this.#cached) this.#watched.set(kindKeyOf(feed.kind), { feed, watch: undefined });
  }

  /** Cached kinds are watched from here on, all by one watch where the backend can. */
  start(): void {
    this.#started = true;
    if (this.#cached.length === 0) return;
    if (this.#options.core.capabilities.multiKindWatch) this.#run(this.#cached);
    else for (const feed of this.#cached) this.#run([feed]);
  }

  /** Tells what is there already, then what changes. Once nobody wants a kind any more its watch ends. */
  subscribe({ namespace, type }: WantedKind, subscriber: FeedSubscriber): Disposable {
    if (isAnyNamespace(namespace)) return this.#subscribeType(type, subscriber);
    const key = kindKeyOf({ namespace, type });
    let watched = this.#watched.get(key);
    if (watched === undefined) {
      const feed = new KindFeed({ namespace, type });
      watched = { feed, watch: this.#run([feed]) };
      this.#watched.set(key, watched);
    }
    const { feed, watch } = watched;
    const subscription = feed.subscribe(subscriber);
    return {
      [Symbol.dispose]: () => {
        subscription[Symbol.dispose]();
        if (feed.subscribed || watch === undefined || this.#watched.get(key)?.feed !== feed) return;
        this.#watched.delete(key);
        watch.stop();
      },
    };
  }

  /** Metadata of all that is known of a kind. */
  known({ namespace, type }: WantedKind): Iterable<Metadata> {
    if (isAnyNamespace(namespace)) return this.#types.get(type)?.known() ?? [];
    const kind = { namespace, type };
    return this.#watched.get(kindKeyOf(kind))?.feed.known() ?? [];
  }

  #subscribeType(type: string, subscriber: FeedSubscriber): Disposable {
    let found = this.#types.get(type);
    if (found === undefined) {
      found = new TypeFeed({
        ...this.#options,
        type,
        subscribe: (kind, more) => this.subscribe(kind, more),
        known: (kind) => this.known(kind),
      });
      this.#types.set(type, found);
      this.#follow(found);
    }
    const feed = found;
    const subscription = feed.subscribe(subscriber);
    return {
      [Symbol.dispose]: () => {
        subscription[Symbol.dispose]();
        if (feed.subscribed || this.#types.get(type) !== feed) return;
        this.#types.delete(type);
        feed.stop();
      },
    };
  }

  /** Ends all watches; resolves once they are closed. */
  async stop(): Promise<void> {
    for (const feed of this.#types.values()) feed.stop();
    for (const watch of this.#running.keys()) watch.stop();
    await Promise.all(this.#running.values());
  }

  #run(feeds: readonly KindFeed[]): FeedWatch {
    if (!this.#started) throw new Error('the feeds were not started');
    const { log } = this.#options;
    const watch = new FeedWatch({
      ...this.#options,
      feeds,
      onKindErrored: (feed, error) => {
        log.log('warn', `${kindText(feed.kind)} cannot be watched together with others; it is watched alone`, { error });
        this.#run([feed]);
      },
      onMoved: () => this.cache.moved(),
    });
    this.#follow(watch);
    return watch;
  }

  #follow(watch: FeedWatch | TypeFeed): void {
    this.#running.set(
      watch,
      watch.run().finally(() => this.#running.delete(watch)),
    );
  }
}
