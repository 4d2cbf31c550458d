import { varintBytes } from '../wire/index.ts';
import { emptyFrame, prefixBytes, putPrefix } from './grpc/framing.ts';

/** How many frames are kept, and their bytes together. */
const mostFrames = 64;
const mostBytes = 8 * 1024 * 1024;

/** How items are put into messages: all in one, or one in each. */
export type Framing = 'together' | 'apart';

/**
 * Frames of a message with one repeated field, number 1, whose items are bytes already: events, and the resource of an
 * answer. Watchers that are level with each other are given the same events, so the frames that were made last are kept.
 */
export class FrameCache {
  /** By their first item. */
  readonly #frames = new Map<Uint8Array, { readonly items: readonly Uint8Array[]; readonly framing: Framing; readonly framed: Buffer }>();
  #bytes = 0;

  get(items: readonly Uint8Array[], framing: Framing): Buffer {
    const first = items[0];
    if (first === undefined) return itemsFrame(items);
    const known = this.#frames.get(first);
    if (known !== undefined) {
      if (known.framing === framing && same(known.items, items)) return known.framed;
      this.#drop(first, known.framed);
    }
    const framed = makeFrames(items, framing);
    this.#frames.set(first, { items, framing, framed });
    this.#bytes += framed.length;
    for (const [oldest, { framed: old }] of this.#frames) {
      if (this.#frames.size <= mostFrames && this.#bytes <= mostBytes) break;
      this.#drop(oldest, old);
    }
    return framed;
  }

  #drop(first: Uint8Array, framed: Buffer): void {
    this.#frames.delete(first);
    this.#bytes -= framed.length;
  }
}

function same(left: readonly Uint8Array[], right: readonly Uint8Array[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}

/** The same for items that nobody else is sent: nothing is kept. */
export function makeFrames(items: readonly Uint8Array[], framing: Framing): Buffer {
  return framing === 'together' ? itemsFrame(items) : itemFrames(items);
}

/** One frame around items, each as field 1. */
export function itemsFrame(items: readonly Uint8Array[]): Buffer {
  let size = 0;
  for (const { length } of items) size += fieldBytes(length);
  const framed = emptyFrame(size);
  let at = prefixBytes;
  for (const item of items) at = putField(framed, item, at);
  return framed;
}

/** A frame for each item, one behind the other. */
function itemFrames(items: readonly Uint8Array[]): Buffer {
  let size = 0;
  for (const { length } of items) size += prefixBytes + fieldBytes(length);
  const framed = Buffer.allocUnsafe(size);
  let at = 0;
  for (const item of items) at = putField(framed, item, putPrefix(framed, fieldBytes(item.length), at));
  return framed;
}

/** Writes field 1; where it ends. */
function putField(into: Buffer, item: Uint8Array, start: number): number {
  let at = start;
  into[at++] = 0x0a;
  let length = item.length;
  for (; length > 0x7f; length >>>= 7) into[at++] = (length & 0x7f) | 0x80;
  into[at++] = length;
  into.set(item, at);
  return at + item.length;
}

function fieldBytes(length: number): number {
  return 1 + varintBytes(length) + length;
}
