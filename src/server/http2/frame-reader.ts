import { defaultFrameBytes, errorCodes, fault, flagBits, frameHeadBytes, frameTypes, padded, preface } from './frames.ts';

/** A header block as it comes, bytes and frames. */
const blockBytes = 64 * 1024;
const blockFrames = 16;

/** A frame; its payload is between two places of the bytes that come with it. */
export interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly start: number;
  readonly end: number;
}

/** Who is told what a connection brings. */
export interface FrameSink {
  /** Nothing more is wanted. */
  readonly destroyed: boolean;
  /** A frame that is neither headers nor what goes on with them. */
  frame(head: FrameHead, bytes: Buffer): void;
  /** A whole header block, which is not kept. */
  headers(stream: number, endStream: boolean, bytes: Buffer, start: number, end: number): void;
}

/** Headers that are not whole. */
interface Block {
  readonly stream: number;
  readonly endStream: boolean;
  readonly since: number;
  readonly parts: Buffer[];
  bytes: number;
}

/** Takes frames out of what a client sends. */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #elapsed: () => number;
  /** What came and is no whole frame yet. */
  #rest: Buffer | undefined;
  #prefaced = false;
  #begun = false;
  #block: Block | undefined;

  /** `elapsed`: milliseconds of a clock that only goes forwards. */
  constructor(sink: FrameSink, elapsed: () => number) {
    this.#sink = sink;
    this.#elapsed = elapsed;
  }

  /** Since when headers have been coming that are not whole; `undefined`: none are. */
  get headersSince(): number | undefined {
    return this.#block?.since;
  }

  /** Throws ConnectionFault for what no client may send, and what its sink throws. */
  read(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    const end = this.#read(bytes);
    if (end < bytes.length && !this.#sink.destroyed) this.#rest = bytes.subarray(end);
  }

  /** Where the first frame begins that is not whole. */
  #read(bytes: Buffer): number {
    let at = 0;
    if (!this.#prefaced) {
      const found = Math.min(bytes.length, preface.length);
      if (preface.compare(bytes, 0, found, 0, found) !== 0) fault(errorCodes.protocol, 'this is no HTTP/2');
      if (bytes.length < preface.length) return 0;
      this.#prefaced = true;
      at = preface.length;
    }
    while (bytes.length - at >= frameHeadBytes && !this.#sink.destroyed) {
      const length = bytes.readUIntBE(at, 3);
      if (length > defaultFrameBytes) fault(errorCodes.frameSize, 'a frame is larger than was allowed');
      const start = at + frameHeadBytes;
      const end = start + length;
      if (end > bytes.length) break;
      const [type, flags] = [bytes[at + 3] as number, bytes[at + 4] as number];
      this.#take({ type, flags, stream: bytes.readUInt32BE(at + 5) & 0x7fffffff, start, end }, bytes);
      at = end;
    }
    return at;
  }

  #take(head: FrameHead, bytes: Buffer): void {
    const { type } = head;
    if (!this.#begun && type !== frameTypes.settings) fault(errorCodes.protocol, 'the first frame must be the settings');
    this.#begun = true;
    if (type === frameTypes.continuation) return this.#continue(head, bytes);
    if (this.#block !== undefined) fault(errorCodes.protocol, 'another frame stands in the middle of a header block');
    if (type === frameTypes.headers) this.#headers(head, bytes);
    else this.#sink.frame(head, bytes);
  }

  #headers({ flags, stream, start, end }: FrameHead, bytes: Buffer): void {
    if (stream % 2 === 0) fault(errorCodes.protocol, 'clients begin streams of odd numbers');
    const [begin, to] = padded(flags, bytes, start, end);
    const from = (flags & flagBits.priority) === 0 ? begin : begin + 5;
    if (from > to) fault(errorCodes.frameSize, 'a header frame has no room for its priority');
    const endStream = (flags & flagBits.endStream) !== 0;
    if ((flags & flagBits.endHeaders) !== 0) return this.#sink.headers(stream, endStream, bytes, from, to);
    this.#block = { stream, endStream, since: this.#elapsed(), parts: [bytes.subarray(from, to)], bytes: to - from };
  }

  #continue({ flags, stream, start, end }: FrameHead, bytes: Buffer): void {
    const block = this.#block;
    if (block === undefined || block.stream !== stream) return fault(errorCodes.protocol, 'there are no headers to go on with');
    block.parts.push(bytes.subarray(start, end));
    block.bytes += end - start;
    if (block.bytes > blockBytes || block.parts.length > blockFrames) fault(errorCodes.enhanceYourCalm, 'headers without an end');
    if ((flags & flagBits.endHeaders) === 0) return;
    this.#block = undefined;
    this.#sink.headers(stream, block.endStream, Buffer.concat(block.parts), 0, block.bytes);
  }
}
