import { expect, test } from 'vitest';
import { frame, MessageReader } from './framing.ts';

const message = (size: number, fill: number): Buffer => Buffer.alloc(size, fill);

/** All that a reader finds in pieces of so many bytes, as it stands when all has come. */
function readAll(bytes: Buffer, pieceBytes: (nth: number) => number): { readonly found: Buffer[]; readonly reader: MessageReader } {
  const reader = new MessageReader(100_000);
  const found: Buffer[] = [];
  for (let at = 0, nth = 0; at < bytes.length; nth++) {
    const end = Math.min(bytes.length, at + pieceBytes(nth));
    reader.push(bytes.subarray(at, end));
    at = end;
    for (let next = reader.next(); next !== undefined; next = reader.next()) found.push((next as { bytes: Buffer }).bytes);
  }
  return { found, reader };
}

test('messages come whole in whatever pieces they are sent, and do not change afterwards', () => {
  const messages = [0, 1, 4, 5, 6, 255, 256, 257, 70_000, 3, 0, 0, 1_000].map(message);
  const bytes = Buffer.concat(messages.map(frame));
  for (const pieceBytes of [() => 1, () => 2, () => 7, () => 300, () => 16_384, () => 1_000_000, (nth: number) => 1 + ((nth * 37) % 500)]) {
    const { found, reader } = readAll(bytes, pieceBytes);
    expect(found.length).toBe(messages.length);
    expect(found.every((one, index) => one.equals(messages[index] as Buffer))).toBe(true);
    expect(reader.pending).toBe(0);
  }
});

test('the beginning of a message keeps nothing of what it was cut from, and is no list of its pieces', () => {
  const reader = new MessageReader(100_000);
  const slab = Buffer.concat([message(30_000, 1), frame(message(50_000, 2))]);
  for (let at = 30_000; at < 30_000 + 40_000; at++) {
    reader.push(slab.subarray(at, at + 1));
    expect(reader.next()).toBeUndefined();
  }
  expect(reader.pending).toBe(40_000);
  slab.fill(9, 30_000, 70_000);
  reader.push(slab.subarray(70_000));
  expect(reader.next()).toEqual({ compressed: false, bytes: message(50_000, 2) });
});

test('a message that is larger than is allowed is told by its size, before it came', () => {
  const reader = new MessageReader(10);
  reader.push(Buffer.from([0, 0, 0, 0]));
  expect(reader.next()).toBeUndefined();
  reader.push(Buffer.from([11]));
  expect(reader.next()).toEqual({ tooLarge: 11 });
});
