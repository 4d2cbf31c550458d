import type { Kind, SteadystateError } from '../../resource/index.ts';
import { findError } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';

/** One kind, and the events of its own watch; the error instead when it could not be watched. */
export interface KindPart {
  readonly kind: Kind;
  readonly source: EventSource | SteadystateError;
}

interface OpenPart {
  readonly kind: Kind;
  readonly source: EventSource;
}

/** Whether an error is about one kind of several, and not about the call or the connection. */
function isOfKind({ code }: SteadystateError): boolean {
  return code === 'Forbidden' || code === 'Unsupported' || code === 'NotFound';
}

/**
 * Several kinds from one watch each, for servers that have no order over kinds: contents come kind by kind in the given
 * order, then one `bootstrapped`; changes of different kinds in the order in which they arrive. No event carries a bookmark
 * or a revision, since each would be about its own kind only. A kind that fails is told and left out; the others go on.
 */
export class MergedSource implements EventSource {
  #parts: OpenPart[];
  readonly #ready: StateEvent[] = [];
  /** How many kinds are still to give their contents; the first of them is the one that is read. */
  #bootstrapping: readonly EventSource[];
  readonly #bootstrap: boolean;
  /** Changes that came behind the contents of their kind, before those of all kinds were given. */
  #held: StateEvent[] = [];
  #callbacks: (() => void)[] = [];
  /** Sources that call back already. */
  readonly #waiting = new Set<EventSource>();
  #next = 0;
  #told = false;
  ended = false;

  constructor(parts: readonly KindPart[], bootstrap: boolean) {
    this.#parts = [];
    for (const { kind, source } of parts) {
      if ('take' in source) this.#parts.push({ kind, source });
      else this.#ready.push({ type: 'kindErrored', kind, error: source });
    }
    this.#bootstrap = bootstrap;
    this.#bootstrapping = bootstrap ? this.#parts.map(({ source }) => source) : [];
    this.#endBootstrap();
  }

  take(max: number): readonly StateEvent[] {
    const events = this.#ready.splice(0, max);
    // Each call begins with another kind, so that a busy one does not starve the rest.
    for (let tried = 0; tried < this.#parts.length && events.length < max; ) {
      const index = this.#next++ % this.#parts.length;
      const { kind, source } = this.#parts[index] as OpenPart;
      tried++;
      if (this.#bootstrapping.length > 0 && source !== this.#bootstrapping[0]) continue;
      const taken = source.take(max - events.length);
      for (const event of taken) this.#put(event, kind, source, events);
      if (taken.length > 0) tried = 0;
      else if (source.ended) this.#drop(source);
    }
    if (this.#parts.length === 0 && this.#ready.length === 0) this.ended = true;
    return events;
  }

  whenReady(callback: () => void): void {
    if (this.ended || this.#ready.length > 0 || this.#parts.length === 0) return callback();
    this.#callbacks.push(callback);
    for (const { source } of this.#parts) {
      if (this.#waiting.has(source) || (this.#bootstrapping.length > 0 && source !== this.#bootstrapping[0])) continue;
      this.#waiting.add(source);
      source.whenReady(() => {
        this.#waiting.delete(source);
        for (const wake of this.#callbacks.splice(0)) wake();
      });
    }
  }

  close(): void {
    this.ended = true;
    this.#ready.length = 0;
    for (const { source } of this.#parts.splice(0)) source.close();
    for (const wake of this.#callbacks.splice(0)) wake();
  }

  #put(event: StateEvent, kind: Kind, source: EventSource, events: StateEvent[]): void {
    switch (event.type) {
      case 'noop':
        return;
      case 'bootstrapped':
        this.#bootstrapping = this.#bootstrapping.filter((other) => other !== source);
        this.#endBootstrap(events);
        return;
      case 'errored':
        if (isOfKind(event.error)) {
          events.push({ type: 'kindErrored', kind, error: event.error });
          return this.#drop(source);
        }
        events.push(event);
        return this.close();
      default: {
        const { bookmark: _bookmark, revision: _revision, ...bare } = event;
        const early = this.#bootstrapping.length > 0 && !this.#bootstrapping.includes(source);
        (early ? this.#held : events).push(Object.freeze(bare) as StateEvent);
      }
    }
  }

  #endBootstrap(events: StateEvent[] = this.#ready): void {
    if (this.#bootstrap && !this.#told && this.#bootstrapping.length === 0) {
      this.#told = true;
      events.push({ type: 'bootstrapped' }, ...this.#held.splice(0));
    }
  }

  #drop(source: EventSource): void {
    this.#parts = this.#parts.filter((part) => part.source !== source);
    source.close();
    if (!this.#bootstrapping.includes(source)) return;
    this.#bootstrapping = this.#bootstrapping.filter((other) => other !== source);
    this.#endBootstrap();
  }
}

/** Watches each kind by itself. Rejects when one cannot be watched for a reason that is not its own. */
export async function openEachKind(
  kinds: readonly Kind[],
  bootstrap: boolean,
  open: (kind: Kind) => Promise<EventSource>,
): Promise<MergedSource> {
  const opened = await Promise.allSettled(kinds.map(open));
  const parts: KindPart[] = [];
  let failed: unknown;
  for (const [index, result] of opened.entries()) {
    const kind = kinds[index] as Kind;
    const error = result.status === 'rejected' ? findError(result.reason) : undefined;
    if (result.status === 'fulfilled') parts.push({ kind, source: result.value });
    else if (error !== undefined && isOfKind(error)) parts.push({ kind, source: error });
    else failed ??= result.reason;
  }
  if (failed === undefined) return new MergedSource(parts, bootstrap);
  for (const { source } of parts) if ('take' in source) source.close();
  throw failed;
}
