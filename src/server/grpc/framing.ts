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

/** Takes messages out of a stream of bytes. */
export class MessageReader {
  readonly #largest: number;
  #chunks: Buffer[] = [];
  #size = 0;

  /** `largest`: bytes of one message. */
  constructor(largest: number) {
    this.#largest = largest;
  }

  /** Bytes that are not yet a whole message. */
  get pending(): number {
    return this.#size;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
  }

  /** The next message; `undefined` until it is whole; its size when it is larger than is allowed. */
  next(): Message | { readonly tooLarge: number } | undefined {
    if (this.#size < prefixBytes) return undefined;
    // The prefix may come in pieces; most often, one chunk is all there is.
    const first = this.#chunks[0] as Buffer;
    const head = first.length >= prefixBytes ? first : this.#join();
    const size = head.readUInt32BE(1);
    if (size > this.#largest) return { tooLarge: size };
    if (this.#size < prefixBytes + size) return undefined;
    const all = this.#join();
    const bytes = all.subarray(prefixBytes, prefixBytes + size);
    const rest = all.subarray(prefixBytes + size);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
    return { compressed: all[0] !== 0, bytes };
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks, this.#size)];
    return this.#chunks[0] as Buffer;
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
