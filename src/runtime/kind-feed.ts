import type { Environment, Logger } from '../environment/index.ts';
import type { Kind, Resource } from '../resource/index.ts';
import { errorCode, kindText } from '../resource/index.ts';
import type { State, StateEvent, Watch } from '../state/index.ts';

/** What became of one resource; several steps may be one. */
export interface FeedChange {
  readonly old: Resource | undefined;
  readonly value: Resource | undefined;
  /** Was there already when the subscriber came. */
  readonly initial: boolean;
}

export interface FeedSubscriber {
  change(change: FeedChange): void;
  /** The feed lost its place and found it again: anything may have changed. */
  resync(): void;
  /** All that was there at the start has been told. */
  synced(): void;
}

const firstRetryMs = 250;
const maxRetryMs = 30_000;

/** The one watch of a kind that all controllers share. It mends itself and never stops the runtime. */
export class KindFeed {
  readonly #state: State;
  readonly #environment: Environment;
  readonly #log: Logger;
  readonly #kind: Kind;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, Resource>();
  readonly #subscribers = new Set<FeedSubscriber>();
  #synced = false;

  constructor(options: {
    readonly state: State;
    readonly environment: Environment;
    readonly log: Logger;
    readonly kind: Kind;
    readonly signal: AbortSignal;
  }) {
    this.#state = options.state;
    this.#environment = options.environment;
    this.#log = options.log;
    this.#kind = options.kind;
    this.#signal = options.signal;
  }

  get size(): number {
    return this.#known.size;
  }

  subscribe(subscriber: FeedSubscriber): void {
    this.#subscribers.add(subscriber);
    for (const value of this.#known.values()) subscriber.change({ old: undefined, value, initial: true });
    if (this.#synced) subscriber.synced();
  }

  /** Runs until the signal aborts. */
  async run(): Promise<void> {
    let delayMs = firstRetryMs;
    while (!this.#signal.aborted) {
      try {
        const watch: Watch = await this.#state.follow(this.#kind, { bootstrapContents: true, signal: this.#signal });
        delayMs = firstRetryMs;
        let failure: unknown;
        await watch.drain((batch) => {
          for (const event of batch) {
            if (event.type === 'errored') failure = event.error;
            else this.#see(event);
          }
        });
        if (this.#signal.aborted || errorCode(failure) === 'Closed') return;
        if (failure !== undefined) throw failure;
      } catch (error) {
        if (this.#signal.aborted) return;
        this.#log.log('warn', `the watch of ${kindText(this.#kind)} failed; trying again`, { error, delayMs });
        await this.#environment.sleep(delayMs, this.#signal).catch(() => {});
        delayMs = Math.min(delayMs * 2, maxRetryMs);
      }
    }
  }

  #see(event: StateEvent): void {
    switch (event.type) {
      case 'created':
      case 'updated': {
        const { id } = event.resource.metadata;
        const old = this.#known.get(id);
        this.#known.set(id, event.resource);
        if (old?.metadata.version === event.resource.metadata.version) return;
        return this.#tell({ old, value: event.resource, initial: !this.#synced });
      }
      case 'destroyed': {
        const { id } = event.resource.metadata;
        const old = this.#known.get(id);
        this.#known.delete(id);
        if (old !== undefined) this.#tell({ old, value: undefined, initial: false });
        return;
      }
      case 'bootstrapped':
        if (this.#synced) return this.#resynced();
        this.#synced = true;
        for (const subscriber of this.#subscribers) subscriber.synced();
        return;
      case 'noop':
        if (event.resync === true) this.#resynced();
        return;
      default:
        return;
    }
  }

  #tell(change: FeedChange): void {
    for (const subscriber of this.#subscribers) subscriber.change(change);
  }

  #resynced(): void {
    for (const subscriber of this.#subscribers) subscriber.resync();
  }
}
