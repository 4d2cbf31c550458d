import { addAbortListener } from 'node:events';
import type { Environment } from '../environment/index.ts';
import type { Resource, TypedKind } from '../resource/index.ts';
import { errorCode, findError, SteadystateError, sameResource } from '../resource/index.ts';
import type { CoreState } from './core-state.ts';
import type { EventSource } from './event-source.ts';
import { createWatch, sourceOf } from './event-stream.ts';
import type { StateEvent } from './events.ts';
import type { Bookmark, WatchKindOptions } from './options.ts';
import type { Watch } from './watch.ts';

const firstDelayMs = 100;
const maxDelayMs = 30_000;

/** Errors that another try cannot mend. */
const final: ReadonlySet<string> = new Set(['Invalid', 'Unsupported', 'Forbidden', 'Unauthenticated', 'Corrupt', 'Closed']);

/** A watch that heals itself; see `State.follow`. */
export async function follow<Spec>(
  core: CoreState,
  environment: Environment,
  kind: TypedKind<Spec>,
  options: Omit<WatchKindOptions, 'startFromBookmark' | 'tailEvents'> = {},
): Promise<Watch<Spec>> {
  const source = new FollowSource(core, environment, kind, options);
  await source.connect(options.signal);
  return createWatch<Spec>(source, { environment, signal: options.signal });
}

class FollowSource implements EventSource {
  readonly #core: CoreState;
  readonly #environment: Environment;
  readonly #kind: TypedKind;
  readonly #options: WatchKindOptions;
  /** What the reader knows, so that after a lost place it can be told what went. */
  readonly #known = new Map<string, Resource>();
  #inner: EventSource | undefined;
  #bookmark: Bookmark | undefined;
  #queued: StateEvent[] = [];
  /** While a resync bootstraps: what was seen of it. */
  #resync: Map<string, Resource> | undefined;
  #waiters: (() => void)[] = [];
  #timer: Disposable | undefined;
  #delayMs = firstDelayMs;
  #bootstrapped: boolean;
  #closed = false;
  #failed = false;
  /** Ends attempts to connect, and what they made. */
  readonly #stop = new AbortController();

  constructor(core: CoreState, environment: Environment, kind: TypedKind, options: WatchKindOptions) {
    this.#core = core;
    this.#environment = environment;
    this.#kind = kind;
    const { signal: _signal, ...rest } = options;
    this.#options = rest;
    this.#bootstrapped = options.bootstrapContents !== true;
  }

  get ended(): boolean {
    return this.#closed || (this.#failed && this.#queued.length === 0);
  }

  /** The first connection; its error is the caller's, or the signal's reason. */
  async connect(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const abort = signal && addAbortListener(signal, () => this.#stop.abort(signal.reason));
    try {
      const options = { ...this.#options, bootstrapBookmark: true, signal: this.#stop.signal };
      this.#attach(sourceOf(await this.#core.watchKind(this.#kind, options)));
    } finally {
      abort?.[Symbol.dispose]();
    }
  }

  take(max: number): readonly StateEvent[] {
    if (this.#queued.length > 0) return this.#queued.splice(0, max);
    const out: StateEvent[] = [];
    // Each round looks anew: a lost connection is given up in the middle of a batch.
    while (out.length === 0 && this.#queued.length === 0) {
      const inner = this.#inner;
      if (inner === undefined || this.#closed) break;
      const batch = inner.take(max);
      if (batch.length === 0) {
        if (inner.ended) this.#lost(undefined);
        break;
      }
      for (const event of batch) {
        if (event.type === 'errored') this.#lost(event.error);
        else this.#see(event, out);
      }
    }
    if (out.length === 0 && this.#queued.length > 0) return this.#queued.splice(0, max);
    return out;
  }

  whenReady(callback: () => void): void {
    if (this.#closed || this.#queued.length > 0 || this.#failed) callback();
    else if (this.#inner) this.#inner.whenReady(callback);
    else this.#waiters.push(callback);
  }

  close(): void {
    this.#closed = true;
    this.#stop.abort();
    this.#timer?.[Symbol.dispose]();
    const inner = this.#inner;
    this.#inner = undefined;
    inner?.close();
    this.#wake();
  }

  #wake(): void {
    for (const callback of this.#waiters.splice(0)) callback();
  }

  #attach(inner: EventSource): void {
    if (this.#closed) return inner.close();
    this.#inner = inner;
    this.#wake();
  }

  #see(event: StateEvent, out: StateEvent[]): void {
    if (event.bookmark !== undefined) {
      this.#bookmark = event.bookmark;
      this.#delayMs = firstDelayMs;
    }
    if (this.#resync !== undefined) return this.#seeResync(event, out);
    if (event.type === 'created' || event.type === 'updated') {
      const { id, uid, version } = event.resource.metadata;
      const known = this.#known.get(id)?.metadata;
      this.#known.set(id, event.resource);
      // A cut within a coalesced stretch is resumed from where that began: what was told already comes again.
      if (known?.version === version && known.uid === uid) return;
    } else if (event.type === 'destroyed') this.#known.delete(event.resource.metadata.id);
    else if (event.type === 'bootstrapped') this.#bootstrapped = true;
    out.push(event);
  }

  /** Turns a fresh bootstrap into the difference to what the reader knows. */
  #seeResync(event: StateEvent, out: StateEvent[]): void {
    const seen = this.#resync as Map<string, Resource>;
    if (event.type === 'created') {
      seen.set(event.resource.metadata.id, event.resource);
      return;
    }
    if (event.type !== 'bootstrapped') return;
    this.#resync = undefined;
    for (const [id, old] of this.#known) {
      const now = seen.get(id);
      if (now !== undefined && now.metadata.uid === old.metadata.uid) continue;
      this.#known.delete(id);
      out.push({ type: 'destroyed', resource: old, resync: true });
    }
    for (const [id, resource] of seen) {
      const old = this.#known.get(id);
      this.#known.set(id, resource);
      if (old === undefined) out.push({ type: 'created', resource, resync: true });
      // Another store in the place of the first may have given the same version to something else.
      else if (!sameResource(old, resource)) out.push({ type: 'updated', resource, old, resync: true });
    }
    if (!this.#bootstrapped) {
      this.#bootstrapped = true;
      out.push(event);
    } else {
      out.push({
        type: 'noop',
        ...(event.bookmark && { bookmark: event.bookmark }),
        ...(event.revision !== undefined && { revision: event.revision }),
        resync: true,
      });
    }
  }

  #lost(error: SteadystateError | undefined): void {
    // Forgotten first: closing it may call back a reader that then looks here again.
    const inner = this.#inner;
    this.#inner = undefined;
    inner?.close();
    if (this.#closed) return;
    if (error !== undefined && final.has(error.code)) return this.#fail(error);
    if (error?.code === 'InvalidBookmark') this.#bookmark = undefined;
    this.#resync = undefined;
    // Half of the time is fixed, half by chance, so that many followers do not come back at once.
    const delayMs = this.#delayMs * (0.5 + this.#environment.random() / 2);
    this.#delayMs = Math.min(this.#delayMs * 2, maxDelayMs);
    this.#timer = this.#environment.after(delayMs, () => void this.#reconnect());
  }

  #fail(error: SteadystateError): void {
    this.#failed = true;
    this.#queued.push({ type: 'errored', error });
    this.#wake();
  }

  async #reconnect(): Promise<void> {
    const resume = this.#bookmark !== undefined && this.#bootstrapped;
    try {
      const { bootstrapContents: _contents, ...others } = this.#options;
      const rest = { ...others, signal: this.#stop.signal };
      const options: WatchKindOptions = resume
        ? { ...rest, startFromBookmark: this.#bookmark as Bookmark }
        : { ...rest, bootstrapContents: true, bootstrapBookmark: true };
      const watch = await this.#core.watchKind(this.#kind, options);
      if (!resume) this.#resync = new Map();
      this.#attach(sourceOf(watch));
    } catch (error) {
      const known = findError(error) ?? new SteadystateError('Unavailable', 'the watch could not be established again', { cause: error });
      if (resume && errorCode(error) === 'InvalidBookmark') {
        this.#bookmark = undefined;
        return this.#reconnect();
      }
      this.#lost(known);
    }
  }
}
