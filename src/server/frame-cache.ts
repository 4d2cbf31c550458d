import { emptyFrame, prefixBytes } from './grpc/framing.ts';

/** How many frames are kept, and their bytes together. */
const mostFrames = 64;
const mostBytes = 8 * 1024 * 1024;

/**
 * Frames of a message with one repeated field, number 1, whose items are bytes already: events, and the resource of an
 * answer. Watchers that are level with each other are given the same events, so the frames that were made last are kept.
 */
export class FrameCache {
  /** By their first item. */
  readonly #frames = new Map<Uint8Array, { readonly items: readonly Uint8Array[]; readonly framed: Buffer }>();
  #bytes = 0;

  get(items: readonly Uint8Array[]): Buffer {
    const first = items[0];
    if (first === undefined) return itemsFrame(items);
    const known = this.#frames.get(first);
    if (known !== undefined) {
      if (same(known.items, items)) return known.framed;
      this.#drop(first, known.framed);
    }
    const framed = itemsFrame(items);
    this.#frames.set(first, { items, framed });
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

/** One frame around items, each as field 1. */
export function itemsFrame(items: readonly Uint8Array[]): Buffer {
  let size = 0;
  for (const { length } of items) size += 1 + varintBytes(length) + length;
  const framed = emptyFrame(size);
  let at = prefixBytes;
  for (const item of items) {
    framed[at++] = 0x0a;
    let length = item.length;
    for (; length > 0x7f; length >>>= 7) framed[at++] = (length & 0x7f) | 0x80;
    framed[at++] = length;
    framed.set(item, at);
    at += item.length;
  }
  return framed;
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest >>>= 7) bytes++;
  return bytes;
}
