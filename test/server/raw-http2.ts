import type { Socket } from 'node:net';
import { HeaderUnpacker } from '../../src/server/http2/hpack.ts';

/** Frames by hand, for clients that keep to nothing. The numbers are told anew, so that a wrong one of the server is seen. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;
export const codes = {
  none: 0,
  protocol: 1,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  compression: 9,
  calm: 11,
} as const;

export function frame(type: number, flagBits: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flagBits;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** A field that is written out, with nothing put into a table. Below 127 characters each. */
export function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0, name.length), Buffer.from(name, 'latin1'), Buffer.of(value.length), Buffer.from(value, 'latin1')]);
}

export const greeting = Buffer.concat([preface, frame(types.settings, 0, 0)]);

/** The headers of a call. */
export function callHeaders(path: string, ...more: readonly Buffer[]): Buffer {
  return Buffer.concat([
    Buffer.of(0x83, 0x86),
    literal(':path', path),
    literal(':authority', 'localhost'),
    literal('content-type', 'application/grpc'),
    ...more,
  ]);
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** The other end of a server's connection, frame by frame. */
export class RawClient {
  readonly socket: Socket;
  readonly #unpacker = new HeaderUnpacker(1_000_000, 1_000);
  readonly #frames: Frame[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #closed = false;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      while (this.#rest.length >= 9) {
        const end = 9 + this.#rest.readUIntBE(0, 3);
        if (this.#rest.length < end) break;
        const payload = this.#rest.subarray(9, end);
        const [type, flagBits] = [this.#rest[3] as number, this.#rest[4] as number];
        this.#frames.push({ type, flags: flagBits, stream: this.#rest.readUInt32BE(5), payload });
        this.#rest = this.#rest.subarray(end);
      }
      this.#wake();
    });
    socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
  }

  send(...frames: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** The next frame that is wanted, others are passed over; `undefined` when the connection has ended. */
  async next(isWanted: (frame: Frame) => boolean): Promise<Frame | undefined> {
    for (;;) {
      while (this.#frames.length > 0) {
        const found = this.#frames.shift() as Frame;
        if (isWanted(found)) return found;
      }
      if (this.#closed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The connection has ended, in whatever way. */
  async closed(): Promise<void> {
    while (!this.#closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  /** How the connection ended: the code of the farewell; `undefined` when there was none. */
  async farewell(): Promise<number | undefined> {
    const found = await this.next(({ type }) => type === types.goAway);
    await this.closed();
    return found?.payload.readUInt32BE(4);
  }

  /** Whether the server still answers on this connection. */
  async answers(): Promise<boolean> {
    this.send(frame(types.ping, 0, 0, Buffer.from('are you?')));
    return (await this.next(({ type, flags: found }) => type === types.ping && found === flags.ack)) !== undefined;
  }

  /** The fields of a header frame. */
  fields({ payload }: Frame): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#unpacker.unpack(payload, 0, payload.length).fields.map(({ name, value }) => [name, value]));
  }

  /** How a stream ended: its last headers, or the code by which it was reset; `undefined` when the connection has ended. */
  async end(stream: number): Promise<Readonly<Record<string, string>> | number | undefined> {
    for (;;) {
      const found = await this.next((one) => one.type === types.goAway || (one.stream === stream && one.type !== types.windowUpdate));
      if (found === undefined || found.type === types.goAway) return undefined;
      if (found.type === types.reset) return found.payload.readUInt32BE(0);
      if (found.type !== types.headers) continue;
      const fields = this.fields(found);
      if ((found.flags & flags.endStream) !== 0) return fields;
    }
  }
}
