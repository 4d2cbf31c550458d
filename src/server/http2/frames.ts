/** Numbers of HTTP/2 (RFC 9113). */

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** The same bit ends a stream and acknowledges. */
export const flagBits = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const settingIds = {
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const errorCodes = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Bytes before the payload of a frame. */
export const frameHeadBytes = 9;
/** What a frame may carry unless the other side allows more; we never do. */
export const defaultFrameBytes = 16_384;
/** What may be sent before the other side has read any of it, unless it says otherwise. */
export const defaultWindow = 65_535;
export const largestWindow = 2 ** 31 - 1;

/** Something that a client must not do: the connection cannot go on. */
export class ConnectionFault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export function fault(code: number, message: string): never {
  throw new ConnectionFault(code, message);
}

export function expectBytes(expected: number, start: number, end: number): void {
  if (end - start !== expected) fault(errorCodes.frameSize, `a frame has ${end - start} bytes where it must have ${expected}`);
}

/** The payload of a frame without what it is padded with. */
export function padded(flags: number, bytes: Uint8Array, start: number, end: number): readonly [number, number] {
  if ((flags & flagBits.padded) === 0) return [start, end];
  const from = start + 1;
  const to = end - (bytes[start] ?? 0);
  if (start === end || from > to) fault(errorCodes.protocol, 'a frame is padded with more than it holds');
  return [from, to];
}
