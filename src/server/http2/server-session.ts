import type { Socket } from 'node:net';
import type { FrameHead, FrameSink } from './frame-reader.ts';
import { FrameReader } from './frame-reader.ts';
import {
  ConnectionFault,
  defaultFrameBytes,
  defaultWindow,
  errorCodes,
  expectBytes,
  fault,
  flagBits,
  frameTypes,
  largestWindow,
  padded,
  settingIds,
} from './frames.ts';
import type { HeaderList } from './hpack.ts';
import { HeaderUnpacker, packHeaders, UnpackError } from './hpack.ts';
import { Output } from './output.ts';
import { Patience } from './patience.ts';
import { areTrailers, readHead } from './request-head.ts';
import type { StreamCarrier } from './server-stream.ts';
import { ServerStream, streamWindow } from './server-stream.ts';

/** What a client may send on a connection before it was read, bytes. What was read is bounded by whom it was given to. */
const connectionWindow = 1024 * 1024;
/** What waits is sent at once when it is so much, bytes. */
const sendBytes = 48 * 1024;
/** A client is behind when so much waits for it in the process, bytes; above the second, nothing it sends is read. */
const backedUpBytes = 256 * 1024;
const deafBytes = 1024 * 1024;
/** What may wait on a connection for readers that are held up, bytes. */
const unreadBytes = 16 * 1024 * 1024;
/** Headers of one request, unpacked: bytes and fields. */
const listBytes = 16 * 1024;
const listFields = 64;
const fieldsTooLarge = packHeaders({ ':status': '431' });

/** Who is told what a client begins. Nothing here may throw. */
export interface SessionOwner {
  /** A request has begun; its `reader` is to be set at once. */
  stream(stream: ServerStream): void;
  /** The connection has ended, and so have its streams; the client may not know yet. */
  closed(): void;
  /** Nothing is left of it. */
  left(): void;
}

export interface SessionOptions {
  /** Streams that a client may have open. */
  readonly mostStreams: number;
  /** Milliseconds of a clock that only goes forwards. */
  readonly elapsed: () => number;
  /** Calls back in the next turn of the event loop: what one turn brings is sent together. */
  readonly soon: (callback: () => void) => void;
}

/**
 * The server's side of one HTTP/2 connection (RFC 9113): frames, header blocks, windows, and the end of those who misuse
 * them. Nothing is pushed, no priorities are kept, and the header table of the client is not used.
 */
export class ServerSession implements StreamCarrier, FrameSink {
  readonly output = new Output();
  window = defaultWindow;
  readonly #socket: Socket;
  readonly #owner: SessionOwner;
  readonly #options: SessionOptions;
  readonly #unpacker = new HeaderUnpacker(listBytes, listFields);
  readonly #streams = new Map<number, ServerStream>();
  readonly #stalled = new Set<ServerStream>();
  readonly #waiting = new Set<ServerStream>();
  #unread = 0;
  /** Those that have been answered: they are known until the answer is on its way. */
  #leaving: ServerStream[] = [];
  readonly #patience: Patience;
  readonly #reader: FrameReader;
  #greeted = false;
  #lastStream = 0;
  #streamSendWindow = defaultWindow;
  #receiveWindow = defaultWindow;
  #consumed = 0;
  #touched = false;
  #closing = false;
  #destroyed = false;
  #pings = 0;
  #pong: (() => void) | undefined;

  constructor(socket: Socket, owner: SessionOwner, options: SessionOptions) {
    this.#socket = socket;
    this.#owner = owner;
    this.#options = options;
    this.#patience = new Patience(options.mostStreams, options.elapsed);
    this.#reader = new FrameReader(this, options.elapsed);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#gone();
      owner.left();
    });
    this.#greet();
  }

  /** The client has sent its settings. */
  get greeted(): boolean {
    return this.#greeted;
  }

  get destroyed(): boolean {
    return this.#destroyed;
  }

  get backedUp(): boolean {
    return this.output.size + this.#socket.writableLength >= backedUpBytes;
  }

  /** Since when headers have been coming that are not whole; `undefined`: none are. */
  get headersSince(): number | undefined {
    return this.#reader.headersSince;
  }

  /** Asks for a sign of life. One at a time. */
  ping(answered: () => void): void {
    this.#pong = answered;
    const at = this.output.frame(frameTypes.ping, 0, 0, 8);
    this.output.room.writeUInt32BE(0, at);
    this.output.room.writeUInt32BE(++this.#pings, at + 4);
    this.touch();
  }

  /** Takes no more requests; ends when the last one has. */
  close(): void {
    if (this.#closing || this.#destroyed) return;
    this.#closing = true;
    this.#goAway(errorCodes.none);
    this.touch();
  }

  /**
   * Says why, and ends the connection. What the client still sends is read and thrown away until it ends its side too: cut at
   * once, the farewell would be lost with it. Those who wait for no end `cut` it.
   */
  destroy(code: number = errorCodes.none): void {
    if (this.#destroyed) return;
    if (!this.#closing || code !== errorCodes.none) this.#goAway(code);
    this.#flush();
    this.#end();
  }

  cut(): void {
    this.#socket.destroy();
  }

  #end(): void {
    this.#gone();
    this.#socket.end();
    this.#socket.resume();
  }

  touch(): void {
    if (this.output.size >= sendBytes) return this.#flush();
    if (this.#touched) return;
    this.#touched = true;
    this.#options.soon(() => this.#flush());
  }

  stall(stream: ServerStream): void {
    this.#stalled.add(stream);
  }

  wait(stream: ServerStream): void {
    this.#waiting.add(stream);
  }

  holdUnread(bytes: number): void {
    this.#unread += bytes;
    if (bytes > 0 && this.#unread > unreadBytes) fault(errorCodes.enhanceYourCalm, 'too much waits to be read');
  }

  leave(stream: ServerStream): void {
    this.#leaving.push(stream);
    this.touch();
  }

  forget(stream: ServerStream): void {
    this.#streams.delete(stream.id);
    this.#stalled.delete(stream);
    this.#waiting.delete(stream);
    if (!stream.remoteEnded) this.#patience.expect(stream.id);
    if (this.#closing) this.touch();
  }

  #greet(): void {
    const settings = [
      [settingIds.enablePush, 0],
      [settingIds.maxConcurrentStreams, this.#options.mostStreams],
      [settingIds.initialWindowSize, streamWindow],
      [settingIds.maxHeaderListSize, listBytes],
    ] as const;
    let at = this.output.frame(frameTypes.settings, 0, 0, settings.length * 6);
    for (const [id, value] of settings) at = this.output.room.writeUInt32BE(value, this.output.room.writeUInt16BE(id, at));
    this.#consumed = connectionWindow - defaultWindow;
    this.#creditConnection();
    this.touch();
  }

  #goAway(code: number): void {
    const at = this.output.frame(frameTypes.goAway, 0, 0, 8);
    this.output.room.writeUInt32BE(this.#lastStream, at);
    this.output.room.writeUInt32BE(code, at + 4);
  }

  #flush(): void {
    this.#touched = false;
    if (this.#destroyed) return;
    if (this.output.size === 0) return this.#flushed([]);
    const { pieces, release } = this.output.take();
    const last = pieces.length - 1;
    const leaving = this.#leaving;
    this.#leaving = [];
    const socket = this.#socket;
    if (last > 0) socket.cork();
    for (let index = 0; index < last; index++) socket.write(pieces[index] as Buffer);
    socket.write(pieces[last] as Buffer, () => {
      release();
      this.#flushed(leaving);
    });
    if (last > 0) socket.uncork();
    if (socket.writableLength > deafBytes) socket.pause();
  }

  /** So much was handed to the system. */
  #flushed(leaving: readonly ServerStream[]): void {
    for (const stream of leaving) {
      this.#streams.delete(stream.id);
      stream.finish();
    }
    if (this.#destroyed) return;
    for (const stream of this.#waiting) {
      if (this.backedUp) break;
      this.#waiting.delete(stream);
      stream.pump();
    }
    if (this.#socket.isPaused() && this.#socket.writableLength <= deafBytes) this.#socket.resume();
    if (this.#closing && this.#streams.size + this.output.size === 0) this.#end();
  }

  #gone(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#pong = undefined;
    for (const stream of this.#streams.values()) stream.finish();
    for (const set of [this.#streams, this.#stalled, this.#waiting]) set.clear();
    this.#owner.closed();
  }

  #read(chunk: Buffer): void {
    if (this.#destroyed) return;
    try {
      this.#reader.read(chunk);
    } catch (error) {
      if (error instanceof ConnectionFault) this.destroy(error.code);
      else if (error instanceof UnpackError) this.destroy(errorCodes.compression);
      else throw error;
    }
  }

  frame({ type, flags, stream, start, end }: FrameHead, bytes: Buffer): void {
    switch (type) {
      case frameTypes.data:
        return this.#data(flags, stream, bytes, start, end);
      case frameTypes.reset:
        expectBytes(4, start, end);
        return this.#reset(stream);
      case frameTypes.settings:
        return this.#settings(flags, stream, bytes, start, end);
      case frameTypes.ping:
        expectBytes(8, start, end);
        return this.#ping(flags, stream, bytes, start, end);
      case frameTypes.windowUpdate:
        expectBytes(4, start, end);
        return this.#windowUpdate(stream, bytes.readUInt32BE(start) & 0x7fffffff);
      case frameTypes.goAway:
        if (stream !== 0) fault(errorCodes.protocol, 'a farewell is of the connection');
        // The client begins nothing more; what it has begun goes on.
        return this.#patience.oddity();
      case frameTypes.priority:
        expectBytes(5, start, end);
        if (stream === 0) fault(errorCodes.protocol, 'a priority is of a stream');
        return this.#patience.oddity();
      case frameTypes.pushPromise:
        return fault(errorCodes.protocol, 'clients do not push');
      default:
        return this.#patience.oddity();
    }
  }

  #data(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const counted = end - start;
    this.#receiveWindow -= counted;
    if (this.#receiveWindow < 0) fault(errorCodes.flowControl, 'more was sent than the window of the connection allows');
    const stream = this.#known(id);
    const [from, to] = padded(flags, bytes, start, end);
    const isLast = (flags & flagBits.endStream) !== 0;
    this.#consumed += counted;
    this.#creditConnection();
    const isEmpty = from === to && !isLast;
    if (stream === undefined || stream.remoteEnded) return this.#afterEnd(id, stream, isLast, isEmpty);
    if (isEmpty) this.#patience.oddity();
    stream.receive(bytes.subarray(from, to), counted);
    if (isLast) stream.receiveEnd();
  }

  headers(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
    // Whatever becomes of them, later ones depend on the table.
    const list = this.#unpacker.unpack(bytes, start, end);
    if (id <= this.#lastStream) return this.#trailers(id, endStream, list);
    // What begins after the farewell is as good as never sent.
    if (this.#closing) return;
    this.#lastStream = id;
    if (this.#streams.size >= this.#options.mostStreams) return this.#refuse(id, errorCodes.refusedStream, endStream);
    if (list.tooLarge) {
      this.output.headers(id, fieldsTooLarge, true);
      return this.#refuse(id, errorCodes.none, endStream);
    }
    const head = readHead(list);
    if (head === undefined) return this.#refuse(id, errorCodes.protocol, endStream);
    const stream = new ServerStream(id, head, this, this.#streamSendWindow);
    this.#streams.set(id, stream);
    this.#owner.stream(stream);
    if (endStream) stream.receiveEnd();
  }

  /** Headers behind a body: nothing in them is of use. */
  #trailers(id: number, endStream: boolean, list: HeaderList): void {
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.remoteEnded) return this.#afterEnd(id, stream, endStream, false);
    if (endStream && areTrailers(list)) return stream.receiveEnd();
    this.#patience.reset();
    stream.reset(errorCodes.protocol);
  }

  #reset(id: number): void {
    const stream = this.#known(id);
    if (stream === undefined) return;
    this.#patience.reset();
    this.forget(stream);
    this.#patience.expectNothing(id);
    stream.finish();
  }

  /** A stream that we reset because of what the client did is as much work as one that the client resets. */
  #refuse(id: number, code: number, endStream: boolean): void {
    if (!endStream) this.#patience.expect(id);
    const at = this.output.frame(frameTypes.reset, 0, id, 4);
    this.output.room.writeUInt32BE(code, at);
    this.touch();
    this.#patience.reset();
  }

  #afterEnd(id: number, stream: ServerStream | undefined, isLast: boolean, isEmpty: boolean): void {
    this.#patience.afterEnd(id, isLast, isEmpty);
    stream?.reset(errorCodes.streamClosed);
  }

  #settings(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    if (id !== 0) fault(errorCodes.protocol, 'settings are of the connection');
    if ((flags & flagBits.ack) !== 0) {
      expectBytes(0, start, end);
      return this.#patience.oddity();
    }
    if ((end - start) % 6 !== 0) fault(errorCodes.frameSize, 'settings have six bytes each');
    for (let at = start; at < end; at += 6) this.#setting(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    if (this.#greeted) this.#patience.oddity();
    this.#greeted = true;
    this.output.frame(frameTypes.settings, flagBits.ack, 0, 0);
    this.touch();
  }

  #setting(id: number, value: number): void {
    switch (id) {
      case settingIds.enablePush:
        if (value > 1) fault(errorCodes.protocol, 'pushing is on or off');
        return;
      case settingIds.maxFrameSize:
        // Ours are never larger than the least that must be taken.
        if (value < defaultFrameBytes || value >= 2 ** 24) fault(errorCodes.protocol, 'frames of that size are not allowed');
        return;
      case settingIds.initialWindowSize: {
        if (value > largestWindow) fault(errorCodes.flowControl, 'a window is too large');
        const change = value - this.#streamSendWindow;
        this.#streamSendWindow = value;
        for (const stream of [...this.#streams.values()]) stream.grow(change);
        return;
      }
      default:
    }
  }

  #ping(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    if (id !== 0) fault(errorCodes.protocol, 'a ping is of the connection');
    if ((flags & flagBits.ack) === 0) {
      const at = this.output.frame(frameTypes.ping, flagBits.ack, 0, 8);
      bytes.copy(this.output.room, at, start, end);
      return this.touch();
    }
    if (this.#pong === undefined || bytes.readUInt32BE(start) !== 0 || bytes.readUInt32BE(start + 4) !== this.#pings)
      return this.#patience.oddity();
    const pong = this.#pong;
    this.#pong = undefined;
    pong();
  }

  #windowUpdate(id: number, change: number): void {
    if (id !== 0) {
      const stream = this.#known(id);
      if (stream === undefined) return;
      if (change > 0) return stream.grow(change);
      this.#patience.reset();
      return stream.reset(errorCodes.protocol);
    }
    if (change === 0) fault(errorCodes.protocol, 'a window grows by nothing');
    this.window += change;
    if (this.window > largestWindow) fault(errorCodes.flowControl, 'a window is too large');
    // In turns: who could not send all stands at the end again.
    for (const stream of this.#stalled) {
      if (this.window <= 0) return;
      this.#stalled.delete(stream);
      stream.pump();
    }
  }

  /** The stream of that number; `undefined` for one that has been. A number that was not yet used is a fault. */
  #known(id: number): ServerStream | undefined {
    if (id === 0 || id % 2 === 0 || id > this.#lastStream) {
      // What was begun after our farewell is not known, and nothing that comes of it counts.
      if (this.#closing && id % 2 === 1) return undefined;
      fault(errorCodes.protocol, 'there is no such stream');
    }
    return this.#streams.get(id);
  }

  #creditConnection(): void {
    if (this.#consumed < connectionWindow / 2) return;
    const at = this.output.frame(frameTypes.windowUpdate, 0, 0, 4);
    this.output.room.writeUInt32BE(this.#consumed, at);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
    this.touch();
  }
}
