/** Length-prefixed messages, and the texts of headers, as gRPC has them. */

export interface Message {
  readonly compressed: boolean;
  readonly bytes: Buffer;
}

export const prefixBytes = 5;

/** Room for a message of this size behind its prefix; the message is written from `prefixBytes` on. */
export function emptyFrame(size: number): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + size);
  putPrefix(framed, size, 0);
  return framed;
}

/** Writes the prefix of a message of this size; where the message begins. */
export function putPrefix(into: Buffer, size: number, at: number): number {
  into[at] = 0;
  return into.writeUInt32BE(size, at + 1);
}

export function frame(message: Uint8Array): Buffer {
  const framed = emptyFrame(message.length);
  framed.set(message, prefixBytes);
  return framed;
}

const noBytes: Buffer = Buffer.alloc(0);
/** Room for the beginning of a message, bytes at least. */
const leastRoom = 256;

/**
 * Takes messages out of a stream of bytes. What is no whole message yet is copied: it costs what it holds, however small the
 * pieces in which it comes, and however large the buffers that they are cut from.
 */
export class MessageReader {
  readonly #largest: number;
  /** What is read now: a chunk as it came, or all that the room holds. */
  #bytes = noBytes;
  #at = 0;
  #room = noBytes;
  #pending = 0;

  /** `largest`: bytes of one message. */
  constructor(largest: number) {
    this.#largest = largest;
  }

  /** Bytes that are not yet a whole message. */
  get pending(): number {
    return this.#pending;
  }

  /** What comes next. `next` must have answered that there is no whole message left. */
  push(chunk: Buffer): void {
    this.#at = 0;
    if (this.#pending === 0) {
      this.#bytes = chunk;
      return;
    }
    const end = this.#pending + chunk.length;
    if (end > this.#room.length) this.#room = this.#copy(this.#room.subarray(0, this.#pending), Math.max(end, this.#room.length * 2));
    chunk.copy(this.#room, this.#pending);
    this.#bytes = this.#room.subarray(0, end);
  }

  /** The next message; `undefined` until it is whole; its size when it is larger than is allowed. */
  next(): Message | { readonly tooLarge: number } | undefined {
    const bytes = this.#bytes;
    const start = this.#at + prefixBytes;
    if (bytes.length >= start) {
      const size = bytes.readUInt32BE(this.#at + 1);
      if (size > this.#largest) return { tooLarge: size };
      if (bytes.length >= start + size) {
        const compressed = bytes[this.#at] !== 0;
        this.#at = start + size;
        return { compressed, bytes: bytes.subarray(start, this.#at) };
      }
    }
    this.#keep();
    return undefined;
  }

  #keep(): void {
    const rest = this.#at === 0 ? this.#bytes : this.#bytes.subarray(this.#at);
    // A room that a message was taken out of is that message's from then on.
    if (rest.length === 0) this.#room = noBytes;
    else if (this.#pending === 0 || this.#at > 0) this.#room = this.#copy(rest, rest.length);
    this.#pending = rest.length;
    this.#bytes = noBytes;
    this.#at = 0;
  }

  #copy(bytes: Buffer, size: number): Buffer {
    const room = Buffer.allocUnsafeSlow(Math.max(leastRoom, size));
    bytes.copy(room);
    return room;
  }
}

/** `grpc-message`: everything but printable ASCII is percent-encoded. */
export function encodeStatusMessage(text: string): string {
  return text
    .replace(/[\r\n]+/g, ' ')
    .replace(/[^\x20-\x24\x26-\x7e]+/g, (part) =>
      Array.from(Buffer.from(part), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    );
}

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** `grpc-timeout` in milliseconds; `undefined` for none, NaN for one that cannot be read. */
export function timeoutMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const parts = /^([0-9]{1,8})([HMSmun])$/.exec(text);
  return parts === null ? Number.NaN : Number(parts[1]) * (unitsMs[parts[2] as string] as number);
}
