import type { Bytes, Resource } from '../../resource/index.ts';
import { isTombstone } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';

/** What is known of one resource; without a value it is gone. */
interface Known {
  readonly value: Resource | undefined;
  readonly revision: number | undefined;
}

/** What became of one resource after a place. */
interface Change extends Known {
  /** The value at that place. */
  readonly base: Resource | undefined;
}

type ResourceEvent = Exclude<StateEvent, { readonly type: 'bootstrapped' | 'noop' | 'kindErrored' | 'errored' }>;

function isAboutResource(event: StateEvent): event is ResourceEvent {
  return event.type === 'created' || event.type === 'updated' || event.type === 'destroyed';
}

function keyOf({ resource: { metadata } }: ResourceEvent): string {
  return `${metadata.namespace}\u0000${metadata.type}\u0000${metadata.id}`;
}

function liveValue(event: ResourceEvent): Resource | undefined {
  return event.type === 'destroyed' ? undefined : event.resource;
}

/**
 * A coalesced stretch that its reader has begun. Only its end is a place to go on from, so when the line breaks within it, the
 * server tells all of it once more, step by step: this turns that into the one step from what the reader was told to what is.
 */
export class Stretch {
  /** What was told since the last place. */
  readonly #told = new Map<string, Known>();
  /** What is told once more. */
  #again: Map<string, Change> | undefined;
  /** The newest revision that was told. */
  #newest = 0;

  /** The reader is told of something that is no place to go on from. */
  tell(event: StateEvent): void {
    if (!isAboutResource(event) || isTombstone(event.resource)) return;
    this.#told.set(keyOf(event), { value: liveValue(event), revision: event.revision });
    this.#newest = Math.max(this.#newest, event.revision ?? 0);
  }

  /** The reader is told of a place to go on from. */
  end(): void {
    this.#told.clear();
    this.#again = undefined;
    this.#newest = 0;
  }

  /** The line broke: what comes from here on begins at the last place. */
  restart(): void {
    this.#again = this.#told.size === 0 ? undefined : new Map();
  }

  /** Events are held, since their reader knows of some already. */
  get mending(): boolean {
    return this.#again !== undefined;
  }

  /** Holds one event of those that come once more; answers whether all that the reader may know of has been told again. */
  hold(event: StateEvent, isPlace: boolean, untilCaughtUp: boolean): boolean {
    if (event.type === 'noop') return true;
    if (!isAboutResource(event)) return false;
    const again = this.#again as Map<string, Change>;
    const key = keyOf(event);
    const before = again.get(key);
    const first = event.type === 'updated' ? event.old : event.type === 'destroyed' ? (event.resource as Resource) : undefined;
    // It moves to its newest revision: a map keeps the order of insertion.
    again.delete(key);
    again.set(key, { base: before === undefined ? first : before.base, value: liveValue(event), revision: event.revision });
    return !untilCaughtUp && isPlace && (event.revision ?? 0) >= this.#newest;
  }

  /** What the reader is to be told instead; `last` ended the row, and has the new place. */
  mend(last: StateEvent, from: Bytes): readonly StateEvent[] {
    const again = this.#again as Map<string, Change>;
    let newest = this.#newest;
    for (const { revision = 0 } of again.values()) newest = Math.max(newest, revision);
    // What came after the place and went again may not be told any more; what a snapshot told has perhaps never changed.
    for (const [key, { value, revision }] of this.#told)
      if (!again.has(key) && value !== undefined && value.metadata.version === String(revision))
        again.set(key, { base: undefined, value: undefined, revision: newest });
    const events: StateEvent[] = [];
    for (const [key, { base, value, revision }] of again) {
      const told = this.#told.get(key);
      const known = told === undefined ? base : told.value;
      const more = { ...(revision !== undefined && { revision }), bookmark: from, resync: true } as const;
      if (known?.metadata.version === value?.metadata.version) continue;
      if (known !== undefined && value?.metadata.uid === known.metadata.uid)
        events.push({ type: 'updated', resource: value, old: known, ...more });
      else {
        if (known !== undefined) events.push({ type: 'destroyed', resource: known, ...more });
        if (value !== undefined) events.push({ type: 'created', resource: value, ...more });
      }
    }
    if (last.type === 'noop') events.push({ ...last, resync: true });
    else {
      const end = events.pop();
      if (end !== undefined) events.push({ ...end, ...(last.bookmark && { bookmark: last.bookmark }) } as StateEvent);
    }
    this.end();
    return events;
  }
}
