import type { Kind } from '../../src/resource/index.ts';
import type { AggregatedWatch, CoreState, EventSource, StateEvent, WatchKindOptions } from '../../src/state/index.ts';
import { createAggregatedWatch, invalidBookmark, sourceOf, unavailable } from '../../src/state/index.ts';
import type { ManualEnvironment } from '../../src/testing/index.ts';

/** A store whose watches deliver, break and forget their bookmarks as a test says. */
export class GatedWatches {
  readonly #environment: () => ManualEnvironment;
  readonly #sources = new Set<GatedSource>();
  bookmarksExpire = false;
  opened = 0;

  constructor(environment: () => ManualEnvironment) {
    this.#environment = environment;
  }

  wrap(core: CoreState): CoreState {
    const gate = async (what: unknown, open: Promise<AggregatedWatch>, options: WatchKindOptions | undefined): Promise<AggregatedWatch> => {
      const inner = await open;
      if (options?.startFromBookmark !== undefined && this.bookmarksExpire) {
        await inner[Symbol.asyncDispose]();
        throw invalidBookmark('the bookmark has expired');
      }
      this.opened++;
      const types = (Array.isArray(what) ? what : [what]).map(({ type }: Kind) => type);
      const source = new GatedSource(types, sourceOf(inner), (closed) => this.#sources.delete(closed));
      source.held = types.some((type) => this.#held.has(type) || this.#held.has('*'));
      this.#sources.add(source);
      return createAggregatedWatch(source, { environment: this.#environment(), signal: options?.signal });
    };
    return new Proxy(core, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key);
        if (typeof member !== 'function') return member;
        if (key !== 'watchKindAggregated' && key !== 'watchKinds') return member.bind(target);
        return (what: unknown, options?: WatchKindOptions) =>
          gate(what, member.call(target, what, options) as Promise<AggregatedWatch>, options);
      },
    });
  }

  readonly #held = new Set<string>();

  /** Nothing (of watches that a type is part of) is delivered any more … */
  hold(type = '*'): void {
    this.#held.add(type);
    for (const source of this.#sources) if (type === '*' || source.types.includes(type)) source.held = true;
  }

  /** … but so many events of each watch; without a number all of them, from now on. */
  release(count?: number): void {
    if (count === undefined) this.#held.clear();
    for (const source of [...this.#sources]) source.release(count);
  }

  breakAll(): void {
    for (const source of [...this.#sources]) source.fail();
  }
}

class GatedSource implements EventSource {
  readonly types: readonly string[];
  readonly #inner: EventSource;
  readonly #onClose: (source: GatedSource) => void;
  held = false;
  #allowed = 0;
  #failed = false;
  #ended = false;
  #callbacks: (() => void)[] = [];

  constructor(types: readonly string[], inner: EventSource, onClose: (source: GatedSource) => void) {
    this.types = types;
    this.#inner = inner;
    this.#onClose = onClose;
  }

  get ended(): boolean {
    return this.#ended || this.#inner.ended;
  }

  take(max: number): readonly StateEvent[] {
    if (this.#failed) {
      this.close();
      return [{ type: 'errored', error: unavailable('the connection broke') }];
    }
    const batch = this.#inner.take(this.held ? Math.min(max, this.#allowed) : max);
    if (this.held) this.#allowed -= batch.length;
    return batch;
  }

  whenReady(callback: () => void): void {
    this.#callbacks.push(callback);
    this.#look();
  }

  release(count: number | undefined): void {
    if (count === undefined) this.held = false;
    else this.#allowed += count;
    this.#look();
  }

  fail(): void {
    this.#failed = true;
    this.#call();
  }

  close(): void {
    this.#ended = true;
    this.#onClose(this);
    this.#inner.close();
    this.#call();
  }

  #look(): void {
    if (this.#failed || this.#ended) return this.#call();
    if (!this.held || this.#allowed > 0) this.#inner.whenReady(() => this.#call());
  }

  #call(): void {
    for (const callback of this.#callbacks.splice(0)) callback();
  }
}
