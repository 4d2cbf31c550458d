import type { WireType } from '@bufbuild/protobuf/wire';

/** Below this many units, text is put in one by one: a call of the engine's encoder costs more. */
const shortText = 24;
/** A room for messages, bytes: they are written one behind the other, and stay where they are. */
const roomBytes = 32 * 1024;
const noRoom: Buffer = Buffer.alloc(0);

/** Writes the fields of messages. One that is larger than a room gets one of its own. */
export class Writer {
  #room = noRoom;
  /** Where this message begins. */
  #start = 0;
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
    this.#reserve(5);
    const expected = this.#forks.pop() as number;
    const start = this.#forks.pop() as number;
    const body = start + expected;
    const length = this.#at - body;
    const needed = varintBytes(length);
    if (needed !== expected) this.#room.copyWithin(start + needed, body, this.#at);
    this.#at = start;
    this.#varint(length);
    this.#at += length;
    return this;
  }

  /** The message that was written; the writer is empty again. */
  finish(): Buffer {
    const message = this.#room.subarray(this.#start, this.#at);
    this.#start = this.#at;
    if (this.#room.length > roomBytes) {
      this.#room = noRoom;
      this.#start = this.#at = 0;
    }
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
    if (this.#at + size > this.#room.length) this.#move(size);
  }

  /** To a room in which so much more has its place. */
  #move(size: number): void {
    const start = this.#start;
    const needed = this.#at - start + size;
    const room = Buffer.allocUnsafeSlow(needed > roomBytes / 2 ? needed * 2 : roomBytes);
    this.#room.copy(room, 0, start, this.#at);
    this.#room = room;
    this.#start = 0;
    this.#at -= start;
    for (let index = 0; index < this.#forks.length; index += 2) this.#forks[index] = (this.#forks[index] as number) - start;
  }
}

/** How many bytes a whole number takes as a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}
