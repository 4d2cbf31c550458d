import type { Environment, Logger } from '../environment/index.ts';
import type { SteadystateError } from '../resource/index.ts';
import { errorCode, kindText } from '../resource/index.ts';
import type { AggregatedWatch, Bookmark, CoreState, StateEvent, WatchKindOptions } from '../state/index.ts';
import { kindKeyOf } from './keys.ts';
import type { KindFeed } from './kind-feed.ts';
import { keepWatching, WatchBackoff } from './watch-backoff.ts';

export interface FeedWatchOptions {
  readonly core: CoreState;
  readonly environment: Environment;
  readonly log: Logger;
  /** One, or several that are to move together, in commit order. */
  readonly feeds: readonly KindFeed[];
  /** One kind of several cannot be watched: it is left out from here on. */
  readonly onKindErrored?: (feed: KindFeed, error: SteadystateError) => void;
  /** After each batch. */
  readonly onMoved?: () => void;
}

/** Keeps feeds up to date by one watch, which mends itself: a broken one goes on from its bookmark, with back-off. */
export class FeedWatch {
  readonly #core: CoreState;
  readonly #environment: Environment;
  readonly #log: Logger;
  readonly #feeds: Map<string, KindFeed>;
  readonly #aggregate: boolean;
  readonly #cached: boolean;
  readonly #onKindErrored: FeedWatchOptions['onKindErrored'];
  readonly #onMoved: FeedWatchOptions['onMoved'];
  readonly #stop = new AbortController();
  readonly #backoff: WatchBackoff;
  #bookmark: Bookmark | undefined;
  /** Events that are held until the feeds are at one revision again. */
  #held: StateEvent[] = [];
  #refilling = false;

  constructor(options: FeedWatchOptions) {
    this.#core = options.core;
    this.#environment = options.environment;
    this.#log = options.log;
    this.#feeds = new Map(options.feeds.map((feed) => [kindKeyOf(feed.kind), feed]));
    this.#aggregate = options.feeds.length > 1;
    this.#cached = options.feeds.some((feed) => feed.view !== undefined);
    this.#onKindErrored = options.onKindErrored;
    this.#onMoved = options.onMoved;
    this.#backoff = new WatchBackoff(options.environment);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Runs until it is stopped, or the store is closed. */
  async run(): Promise<void> {
    const kinds = (): string => [...this.#feeds.values()].map((feed) => kindText(feed.kind)).join(', ');
    await keepWatching({
      backoff: this.#backoff,
      log: this.#log,
      signal: this.#stop.signal,
      wakes: kinds,
      what: kinds,
      watch: () => this.#watch(),
      mend: (failure) => {
        if (errorCode(failure) !== 'InvalidBookmark' || this.#bookmark === undefined) return false;
        this.#log.log('info', `the bookmark of ${kinds()} has expired; all contents are read again`, {});
        this.#bookmark = undefined;
        return true;
      },
      goesOn: () => this.#feeds.size > 0,
    });
    this.#measureSizes(() => 0);
  }

  /** Watches until that ends; answers why, if it is known. */
  async #watch(): Promise<unknown> {
    const feeds = [...this.#feeds.values()];
    const resume = this.#bookmark !== undefined && feeds.every((feed) => feed.synced);
    const options: WatchKindOptions = {
      signal: this.#stop.signal,
      ...(resume ? { startFromBookmark: this.#bookmark as Bookmark } : { bootstrapContents: true, bootstrapBookmark: true }),
    };
    const watch = await this.#open(feeds, options);
    this.#held = [];
    this.#refilling = !resume && this.#cached && feeds.every((feed) => feed.synced);
    if (!resume) for (const feed of feeds) feed.beginContents();
    let failure: unknown;
    await watch.drain((batch) => {
      const coalesced = new Set<KindFeed>();
      for (const event of batch) {
        if (event.type === 'errored') failure = event.error;
        else this.#take(event, coalesced);
      }
      for (const feed of coalesced) feed.resync('coalesced');
      this.#measure(batch.at(-1));
      this.#onMoved?.();
    });
    return failure;
  }

  #open(feeds: readonly KindFeed[], options: WatchKindOptions): Promise<AggregatedWatch> {
    if (!this.#aggregate) return this.#core.watchKindAggregated((feeds[0] as KindFeed).kind, options);
    return this.#core.watchKinds(
      feeds.map((feed) => feed.kind),
      options,
    );
  }

  #take(event: StateEvent, coalesced: Set<KindFeed>): void {
    const moved = event.bookmark !== undefined && !(this.#bookmark?.equals(event.bookmark) ?? false);
    // A cached view moves from one revision to another, never to somewhere between.
    const between = this.#refilling ? event.type !== 'bootstrapped' : event.resync === true && !moved;
    if (this.#cached && event.type !== 'kindErrored' && between) {
      this.#held.push(event);
      return;
    }
    for (const earlier of this.#held.splice(0)) this.#apply(earlier, coalesced);
    this.#refilling = false;
    this.#apply(event, coalesced);
    if (moved) this.#bookmark = event.bookmark;
  }

  #apply(event: StateEvent, coalesced: Set<KindFeed>): void {
    switch (event.type) {
      case 'created':
      case 'updated':
      case 'destroyed': {
        // Contents alone do not show that the watch works.
        if (event.bookmark !== undefined) this.#backoff.reset();
        const { metadata } = event.resource;
        const feed = this.#feeds.get(kindKeyOf(metadata));
        if (feed === undefined) return;
        if (event.type === 'destroyed') feed.remove(metadata.id);
        else feed.put(event.resource);
        if (event.resync === true) coalesced.add(feed);
        if (event.revision !== undefined) this.#movedTo(String(event.revision));
        else feed.moveTo(metadata.version);
        return;
      }
      case 'bootstrapped':
      case 'noop':
        if (event.revision !== undefined) this.#movedTo(String(event.revision));
        if (event.type === 'bootstrapped') for (const feed of this.#feeds.values()) feed.endContents();
        else if (event.resync === true) for (const feed of this.#feeds.values()) feed.resync('lost');
        return;
      case 'kindErrored': {
        const key = kindKeyOf(event.kind);
        const feed = this.#feeds.get(key);
        this.#feeds.delete(key);
        if (feed !== undefined) this.#onKindErrored?.(feed, event.error);
        return;
      }
    }
  }

  #movedTo(position: string): void {
    for (const feed of this.#feeds.values()) feed.moveTo(position);
  }

  #measure(event: StateEvent | undefined): void {
    this.#measureSizes(({ size }) => size);
    if (event?.type !== 'created' && event?.type !== 'updated') return;
    // What was there before tells nothing of how fast a change arrives.
    if (this.#feeds.get(kindKeyOf(event.resource.metadata))?.filling !== false) return;
    const { namespace, type, updated } = event.resource.metadata;
    const lagMs = this.#environment.now() - Date.parse(updated);
    if (Number.isNaN(lagMs)) return;
    this.#environment.metrics
      .gauge('steadystate_watch_lag_seconds', 'From a write to its arrival, by the clocks of both', ['namespace', 'type'])
      .set(Math.max(0, lagMs) / 1000, { namespace, type });
  }

  #measureSizes(sizeOf: (feed: KindFeed) => number): void {
    const resources = this.#environment.metrics.gauge('steadystate_watched_resources', 'Resources of a kind that the runtime knows of', [
      'namespace',
      'type',
      'cached',
    ]);
    for (const feed of this.#feeds.values()) {
      const { kind, view } = feed;
      resources.set(sizeOf(feed), { namespace: kind.namespace, type: kind.type, cached: view === undefined ? 'no' : 'yes' });
    }
  }
}
