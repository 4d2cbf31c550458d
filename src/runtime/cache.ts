import { addAbortListener } from 'node:events';
import type { Kind, Pointer } from '../resource/index.ts';
import type { ListOptions, ResourceList } from '../state/index.ts';
import { keyOf, kindKeyOf } from './keys.ts';
import type { KindFeed } from './kind-feed.ts';
import { isBefore } from './kind-feed.ts';
import type { KindView } from './kind-view.ts';

/** What a controller has written, and a view must show before that controller runs again. */
interface Expectation {
  readonly pointer: Pointer;
  readonly version: string | undefined;
  /** The incarnation that it was, if that is known. */
  readonly uid: string | undefined;
  readonly end: 'tornDown' | 'gone' | undefined;
}

/** One write: what it left, or how it ended the resource. */
export type Written = { readonly version: string; readonly uid: string } | { readonly end: 'tornDown' | 'gone'; readonly uid?: string };

/** The cached kinds: reads come from here, and a controller never runs on a view older than its own writes. */
export class Cache {
  readonly #feeds = new Map<string, KindFeed>();
  readonly #globalRevision: boolean;
  readonly #expectations = new Map<string, Map<string, Expectation>>();
  #waiting: (() => void)[] = [];

  constructor(feeds: readonly KindFeed[], globalRevision: boolean) {
    for (const feed of feeds) this.#feeds.set(kindKeyOf(feed.kind), feed);
    this.#globalRevision = globalRevision;
  }

  view(kind: Kind): KindView | undefined {
    return this.#feeds.size === 0 ? undefined : this.#feeds.get(kindKeyOf(kind))?.view;
  }

  /** Resolves once all contents of the kind are in; rejects with the signal's reason. */
  filled(kind: Kind, signal: AbortSignal): Promise<void> {
    return this.#until(() => this.view(kind)?.filled !== false, signal);
  }

  list(kind: Kind, view: KindView, query: ListOptions): ResourceList {
    const items = view.list(query);
    const position = this.#feeds.get(kindKeyOf(kind))?.position ?? '';
    return Object.freeze(this.#globalRevision && position !== '' ? { items, revision: Number(position) } : { items });
  }

  /** A controller has written. */
  wrote(controller: string, { namespace, type, id }: Pointer, written: Written): void {
    const pointer = { namespace, type, id };
    const view = this.view(pointer);
    if (view === undefined) return;
    let expected = this.#expectations.get(controller);
    if (expected === undefined) {
      expected = new Map();
      this.#expectations.set(controller, expected);
    }
    const key = keyOf(pointer);
    const before = expected.get(key);
    if ('version' in written) expected.set(key, { pointer, ...written, end: undefined });
    else
      expected.set(key, {
        pointer,
        version: before?.version,
        uid: written.uid ?? before?.uid ?? view.get(id)?.metadata.uid,
        end: written.end,
      });
  }

  /** Resolves once the views show all that the controller has written; `undefined`: they do. */
  caughtUp(controller: string, signal: AbortSignal): Promise<void> | undefined {
    if (this.#isCaughtUp(controller)) return undefined;
    return this.#until(() => this.#isCaughtUp(controller), signal);
  }

  /** The views have moved on. */
  moved(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const look of waiting) look();
  }

  #isCaughtUp(controller: string): boolean {
    const expected = this.#expectations.get(controller);
    if (expected === undefined) return true;
    for (const expectation of expected.values()) if (!this.#shows(expectation)) return false;
    this.#expectations.delete(controller);
    return true;
  }

  #shows({ pointer, version, uid, end }: Expectation): boolean {
    const feed = this.#feeds.get(kindKeyOf(pointer));
    if (feed?.view === undefined) return true;
    // Contents that are being read may be older than the write.
    if (!feed.view.filled) return false;
    if (version !== undefined && isBefore(feed.position, version)) return false;
    const metadata = feed.view.get(pointer.id)?.metadata;
    if (metadata === undefined || metadata.uid !== uid) return true;
    // Where each resource counts its versions for itself, that of another one says nothing.
    if (end === undefined) return this.#globalRevision || version === undefined || !isBefore(metadata.version, version);
    return end === 'tornDown' && metadata.phase === 'tearingDown';
  }

  #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    if (holds()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const listener = addAbortListener(signal, () => {
        listener[Symbol.dispose]();
        this.#waiting = this.#waiting.filter((other) => other !== look);
        reject(signal.reason as Error);
      });
      const look = (): void => {
        if (!holds()) {
          this.#waiting.push(look);
          return;
        }
        listener[Symbol.dispose]();
        resolve();
      };
      this.#waiting.push(look);
    });
  }
}
