import { ConnectionFault, defaultFrameBytes, errorCodes, frameTypes, largestWindow } from './frames.ts';
import type { Output } from './output.ts';
import type { RequestHead } from './request-head.ts';

/** What a client may send of a stream before it was read, bytes. */
export const streamWindow = 256 * 1024;

/** Who is told what a client sends on a stream. Nothing here may throw. */
export interface StreamReader {
  /** Some of the body. The bytes do not change any more. */
  data(bytes: Buffer): void;
  /** The client has said all. */
  end(): void;
  /** Called once, when all was handed to the system, or the stream was reset, or its connection is gone. */
  closed(): void;
}

/** The connection, as its streams see it. */
export interface StreamCarrier {
  readonly output: Output;
  /** What may be sent on the connection; streams take from it. */
  window: number;
  /** The client does not read what was sent already. */
  readonly backedUp: boolean;
  /** There is something to send. */
  touch(): void;
  /** Calls `pump` when the connection's window grows. */
  stall(stream: ServerStream): void;
  /** Calls `pump` when the connection is no longer backed up. */
  wait(stream: ServerStream): void;
  /** Counts bytes that came and are not read. Throws ConnectionFault when they are too many. */
  holdUnread(bytes: number): void;
  /** Both sides have said all: calls `finish` once it was sent. */
  leave(stream: ServerStream): void;
  /** Nothing more is known of the stream. */
  forget(stream: ServerStream): void;
}

const ignored: StreamReader = { data: () => {}, end: () => {}, closed: () => {} };

/** One request and its answer. */
export class ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  reader: StreamReader = ignored;
  readonly #carrier: StreamCarrier;
  #sendWindow: number;
  /** What waits for a window: pieces, how much of the first was sent, and the header block behind them. */
  readonly #pending: Uint8Array[] = [];
  #sent = 0;
  #trailers: Buffer | undefined;
  #waiting: (() => void)[] = [];
  #receiveWindow = streamWindow;
  #consumed = 0;
  #paused = false;
  /** What came while paused. */
  readonly #unread: Buffer[] = [];
  #remoteEnded = false;
  #endDelivered = false;
  #localEnded = false;
  #closed = false;
  #headersSent = false;

  constructor(id: number, head: RequestHead, carrier: StreamCarrier, sendWindow: number) {
    this.id = id;
    this.head = head;
    this.#carrier = carrier;
    this.#sendWindow = sendWindow;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get headersSent(): boolean {
    return this.#headersSent;
  }

  /** The client has said all. */
  get remoteEnded(): boolean {
    return this.#remoteEnded;
  }

  /** What was written last waits for the client to read. */
  get blocked(): boolean {
    return !this.#closed && (this.#pending.length > 0 || this.#carrier.backedUp);
  }

  /** Calls back, once, when more may be written, or the stream is closed. */
  whenWritable(callback: () => void): void {
    if (!this.blocked) return callback();
    this.#waiting.push(callback);
    if (this.#pending.length === 0) this.#carrier.wait(this);
  }

  /** Begins the answer; `endStream`: and ends it. */
  respond(block: Buffer, endStream = false): void {
    if (this.#closed || this.#localEnded) return;
    this.#headersSent = true;
    this.#carrier.output.headers(this.id, block, endStream);
    this.#carrier.touch();
    if (endStream) this.#endLocal();
  }

  /** The bytes must not change any more. */
  write(bytes: Uint8Array): void {
    if (this.#closed || this.#localEnded || this.#trailers !== undefined) return;
    this.#pending.push(bytes);
    this.pump();
  }

  /** Ends the answer, behind all that was written. */
  end(trailers: Buffer): void {
    if (this.#closed || this.#localEnded) return;
    this.#trailers = trailers;
    this.pump();
  }

  reset(code: number): void {
    if (this.#closed) return;
    const { output } = this.#carrier;
    const at = output.frame(frameTypes.reset, 0, this.id, 4);
    output.room.writeUInt32BE(code, at);
    this.#carrier.touch();
    this.#carrier.forget(this);
    this.finish();
  }

  /** Reads no more for now; the client can send only so much further. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    while (!this.#paused && this.#unread.length > 0) {
      const bytes = this.#unread.shift() as Buffer;
      this.#carrier.holdUnread(-bytes.length);
      this.#deliver(bytes);
    }
    this.#deliverEnd();
  }

  /** Sends what windows and the connection allow, and tells those who wait for it. */
  pump(): void {
    const carrier = this.#carrier;
    while (this.#pending.length > 0) {
      // What waits here is held as it is; there it would be copied.
      if (carrier.backedUp) return carrier.wait(this);
      const bytes = this.#pending[0] as Uint8Array;
      const end = Math.min(bytes.length, this.#sent + Math.min(defaultFrameBytes, this.#sendWindow, carrier.window));
      if (end <= this.#sent) {
        if (carrier.window <= 0 && this.#sendWindow > 0) carrier.stall(this);
        return;
      }
      const size = end - this.#sent;
      this.#sendWindow -= size;
      carrier.window -= size;
      carrier.output.data(this.id, bytes, this.#sent, end);
      carrier.touch();
      if (this.#closed) return;
      this.#sent = end;
      if (end < bytes.length) continue;
      this.#sent = 0;
      this.#pending.shift();
    }
    if (this.#trailers !== undefined) {
      carrier.output.headers(this.id, this.#trailers, true);
      carrier.touch();
      this.#trailers = undefined;
      this.#endLocal();
    } else if (this.#waiting.length > 0) {
      if (carrier.backedUp) carrier.wait(this);
      else this.#wake();
    }
  }

  /** Tells those who wait that they may write; they may find it blocked again. */
  #wake(): void {
    for (const callback of this.#waiting.splice(0)) callback();
  }

  /** The client takes so much more, or less. Throws ConnectionFault when that is too much. */
  grow(change: number): void {
    this.#sendWindow += change;
    if (this.#sendWindow > largestWindow) throw new ConnectionFault(errorCodes.flowControl, 'a window is too large');
    if (change > 0) this.pump();
  }

  /** `counted`: what the frame takes of the window. Throws ConnectionFault when the client had no room for it. */
  receive(bytes: Buffer, counted: number): void {
    this.#receiveWindow -= counted;
    if (this.#receiveWindow < 0) throw new ConnectionFault(errorCodes.flowControl, 'more was sent than a window allows');
    if (counted > bytes.length) this.#credit(counted - bytes.length);
    if (bytes.length === 0) return;
    if (!this.#paused) return this.#deliver(bytes);
    this.#carrier.holdUnread(bytes.length);
    // Of its own, not a part of what all streams brought.
    this.#unread.push(Buffer.from(bytes));
  }

  receiveEnd(): void {
    this.#remoteEnded = true;
    this.#deliverEnd();
    if (this.#localEnded && !this.#closed) this.#carrier.leave(this);
  }

  /** It is over. Idempotent. */
  finish(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const bytes of this.#unread) this.#carrier.holdUnread(-bytes.length);
    this.#pending.length = this.#unread.length = 0;
    this.reader.closed();
    this.#wake();
  }

  #deliver(bytes: Buffer): void {
    if (this.#closed) return;
    this.reader.data(bytes);
    this.#credit(bytes.length);
  }

  #deliverEnd(): void {
    if (!this.#remoteEnded || this.#endDelivered || this.#paused || this.#unread.length > 0 || this.#closed) return;
    this.#endDelivered = true;
    this.reader.end();
  }

  /** Gives back room that was read, half a window at a time. */
  #credit(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < streamWindow / 2 || this.#remoteEnded || this.#closed) return;
    const { output } = this.#carrier;
    const at = output.frame(frameTypes.windowUpdate, 0, this.id, 4);
    output.room.writeUInt32BE(this.#consumed, at);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
    this.#carrier.touch();
  }

  #endLocal(): void {
    this.#localEnded = true;
    if (this.#remoteEnded && !this.#closed) this.#carrier.leave(this);
  }
}
