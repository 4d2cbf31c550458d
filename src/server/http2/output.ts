import { defaultFrameBytes, flagBits, frameHeadBytes, frameTypes } from './frames.ts';

/** A room for much; the largest frame fits. */
const roomBytes = 64 * 1024;
/** A room for little, bytes at most: it is cut from Node's own pool. */
const smallBytes = 2048;
/** Rooms that are kept for whoever is next, by all connections of the process together. */
const mostSpare = 64;
const spare: Buffer[] = [];
const noRoom: Buffer = Buffer.alloc(0);

/** What is sent in one go. */
export interface Outgoing {
  readonly pieces: readonly Buffer[];
  /** Must be called once, when the system has taken all of it: the room is used again. */
  release(): void;
}

/** Frames that wait to be sent together. A connection that is silent keeps no room. */
export class Output {
  #pieces: Buffer[] = [];
  #rooms: Buffer[] = [];
  #room = noRoom;
  #at = 0;
  #size = 0;
  /** How much was sent lately: about as much comes next. */
  #usual = 0;

  /** Bytes that wait. */
  get size(): number {
    return this.#size;
  }

  /** A frame whose payload is written by the caller, from the place that is answered, into `room`. */
  frame(type: number, flags: number, stream: number, payloadBytes: number): number {
    const bytes = frameHeadBytes + payloadBytes;
    if (this.#at + bytes > this.#room.length) this.#next(bytes);
    const room = this.#room;
    const at = this.#at;
    room[at] = payloadBytes >>> 16;
    room[at + 1] = payloadBytes >>> 8;
    room[at + 2] = payloadBytes;
    room[at + 3] = type;
    room[at + 4] = flags;
    this.#at += bytes;
    this.#size += bytes;
    return room.writeUInt32BE(stream, at + 5);
  }

  /** Where `frame` said that the payload goes. */
  get room(): Buffer {
    return this.#room;
  }

  /** One frame with these bytes, which are no more than a frame may carry. */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void {
    const at = this.frame(frameTypes.data, 0, stream, end - start);
    this.#room.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), at);
  }

  /** A header block, in as many frames as it needs. */
  headers(stream: number, block: Buffer, endStream: boolean): void {
    const last = endStream ? flagBits.endStream : 0;
    for (let start = 0; ; ) {
      const end = Math.min(block.length, start + defaultFrameBytes);
      const type = start === 0 ? frameTypes.headers : frameTypes.continuation;
      const at = this.frame(type, (start === 0 ? last : 0) | (end === block.length ? flagBits.endHeaders : 0), stream, end - start);
      block.copy(this.#room, at, start, end);
      if (end === block.length) return;
      start = end;
    }
  }

  /** All that waits, in order; nothing does any more. */
  take(): Outgoing {
    this.#cut();
    const pieces = this.#pieces;
    const rooms = this.#rooms;
    this.#pieces = [];
    this.#rooms = [];
    this.#room = noRoom;
    this.#at = 0;
    // One large answer among small ones is soon forgotten.
    this.#usual = Math.max(this.#size, this.#usual >>> 1);
    this.#size = 0;
    return {
      pieces,
      release: () => {
        for (const room of rooms) if (spare.length < mostSpare) spare.push(room);
      },
    };
  }

  /** A room for a frame of so many bytes. */
  #next(bytes: number): void {
    this.#cut();
    const expected = Math.max(bytes, this.#size === 0 ? this.#usual : roomBytes);
    if (expected <= smallBytes) this.#room = Buffer.allocUnsafe(smallBytes);
    else {
      this.#room = spare.pop() ?? Buffer.allocUnsafeSlow(roomBytes);
      this.#rooms.push(this.#room);
    }
    this.#at = 0;
  }

  /** Ends the piece that is being filled. */
  #cut(): void {
    if (this.#at > 0) this.#pieces.push(this.#at === this.#room.length ? this.#room : this.#room.subarray(0, this.#at));
  }
}
