import type { WireType } from '@bufbuild/protobuf/wire';

/** Below this many units, text is put in one by one: a call of the engine's encoder costs more. */
const shortText = 24;
/** After a message that is larger, bytes, its room is given back. */
const largestKept = 1024 * 1024;

/** Writes the fields of messages. Its room grows to what they need and is used again: each message is copied out once. */
export class Writer {
  #room = Buffer.allocUnsafeSlow(4096);
  #at = 0;
  readonly #forks: number[] = [];

  tag(field: number, type: WireType): this {
    return this.#varint(field * 8 + type);
  }

  bool(value: boolean): this {
    return this.#varint(value ? 1 : 0);
  }

  int32(value: number): this {
    if ((value | 0) !== value) throw new RangeError(`expected a whole number of 32 bits, found ${value}`);
    return this.int64(value);
  }

  int64(value: number): this {
    if (!Number.isSafeInteger(value)) throw new RangeError(`expected a whole number that is safe in JavaScript, found ${value}`);
    return value < 0 ? this.#negative(value) : this.#varint(value);
  }

  bytes(value: Uint8Array): this {
    this.#varint(value.length);
    this.#reserve(value.length);
    this.#room.set(value, this.#at);
    this.#at += value.length;
    return this;
  }

  string(value: string): this {
    const { length } = value;
    // A unit takes three bytes at most.
    this.#reserve(length * 3 + 5);
    const room = this.#room;
    if (length < shortText) {
      let at = this.#at;
      room[at++] = length;
      let index = 0;
      for (; index < length; index++) {
        const unit = value.charCodeAt(index);
        if (unit > 0x7f) break;
        room[at++] = unit;
      }
      if (index === length) {
        this.#at = at;
        return this;
      }
    }
    // How long it is as bytes is known afterwards; most often, as long as it is in units.
    this.fork(varintBytes(length));
    this.#at += room.write(value, this.#at, 'utf8');
    return this.join();
  }

  /** Begins a part whose length goes before it. `expected`: bytes that the length will take. */
  fork(expected = 1): this {
    this.#reserve(expected);
    this.#forks.push(this.#at, expected);
    this.#at += expected;
    return this;
  }

  /** Ends the part that was begun last. */
  join(): this {
    const expected = this.#forks.pop() as number;
    const start = this.#forks.pop() as number;
    const body = start + expected;
    const length = this.#at - body;
    const needed = varintBytes(length);
    if (needed !== expected) {
      this.#reserve(5);
      this.#room.copyWithin(start + needed, body, this.#at);
    }
    this.#at = start;
    this.#varint(length);
    this.#at += length;
    return this;
  }

  /** The message that was written; the writer is empty again. */
  finish(): Buffer {
    const message = Buffer.allocUnsafe(this.#at);
    this.#room.copy(message, 0, 0, this.#at);
    this.#at = 0;
    if (this.#room.length > largestKept) this.#room = Buffer.allocUnsafeSlow(4096);
    return message;
  }

  #varint(value: number): this {
    if (value > 0x7f) return this.#longVarint(value);
    this.#reserve(1);
    this.#room[this.#at++] = value;
    return this;
  }

  #longVarint(value: number): this {
    this.#reserve(10);
    const room = this.#room;
    let at = this.#at;
    let rest = value;
    for (; rest > 0x7f_ff_ff_ff; rest = Math.floor(rest / 128)) room[at++] = (rest % 128) | 0x80;
    for (; rest > 0x7f; rest >>>= 7) room[at++] = (rest & 0x7f) | 0x80;
    room[at++] = rest;
    this.#at = at;
    return this;
  }

  /** Ten bytes: as the 64 bits of its two's complement. */
  #negative(value: number): this {
    this.#reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest > 0x7fn; rest >>= 7n) this.#room[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.#room[this.#at++] = Number(rest);
    return this;
  }

  #reserve(size: number): void {
    const needed = this.#at + size;
    if (needed <= this.#room.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#room.length * 2));
    // Not only what is before this place: a part whose length is about to be written stands behind it.
    this.#room.copy(larger);
    this.#room = larger;
  }
}

/** How many bytes a whole number takes as a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}
