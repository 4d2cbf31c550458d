import { defaultFrameBytes, flagBits, frameHeadBytes, frameTypes } from './frames.ts';

/** Larger pieces are handed on as they are; smaller ones are copied together. */
const largeBytes = 8 * 1024;
/** Room that is made for small pieces, bytes: at least and at most. */
const leastRoom = 512;
const mostRoom = 64 * 1024;
const noRoom: Buffer = Buffer.alloc(0);

/** Frames that wait to be sent together. Nothing is kept between one sending and the next. */
export class Output {
  #pieces: Buffer[] = [];
  #room = noRoom;
  #from = 0;
  #at = 0;
  #size = 0;
  /** How much was sent last: about as much comes next. */
  #usual = 0;

  /** Bytes that wait. */
  get size(): number {
    return this.#size;
  }

  /** A frame whose payload is written by the caller, from the place that is answered, into `room`. */
  frame(type: number, flags: number, stream: number, payloadBytes: number): number {
    const at = this.#reserve(frameHeadBytes + payloadBytes);
    return this.#putHead(at, type, flags, stream, payloadBytes);
  }

  /** Where `frame` said that the payload goes. */
  get room(): Buffer {
    return this.#room;
  }

  /** One frame with these bytes of a piece. The piece must not change any more. */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (length < largeBytes) {
      const at = this.frame(frameTypes.data, 0, stream, length);
      this.#room.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), at);
      return;
    }
    this.frame(frameTypes.data, 0, stream, 0);
    // The length of what follows belongs into the head.
    this.#putLength(this.#at - frameHeadBytes, length);
    this.#cut();
    this.#pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset + start, length));
    this.#size += length;
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
  take(): readonly Buffer[] {
    this.#cut();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#usual = this.#size;
    this.#size = 0;
    this.#room = noRoom;
    this.#from = this.#at = 0;
    return pieces;
  }

  #reserve(bytes: number): number {
    if (this.#at + bytes > this.#room.length) {
      this.#cut();
      this.#room = Buffer.allocUnsafe(Math.max(bytes, Math.min(mostRoom, Math.max(leastRoom, this.#usual, this.#size))));
      this.#from = this.#at = 0;
    }
    const start = this.#at;
    this.#at += bytes;
    this.#size += bytes;
    return start;
  }

  #putHead(at: number, type: number, flags: number, stream: number, length: number): number {
    const room = this.#room;
    this.#putLength(at, length);
    room[at + 3] = type;
    room[at + 4] = flags;
    return room.writeUInt32BE(stream, at + 5);
  }

  #putLength(at: number, length: number): void {
    this.#room[at] = length >>> 16;
    this.#room[at + 1] = length >>> 8;
    this.#room[at + 2] = length;
  }

  /** Ends the piece that is being filled. */
  #cut(): void {
    if (this.#at > this.#from) this.#pieces.push(this.#room.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }
}
