import { expect, test } from 'vitest';
import { Output } from './output.ts';

function frames(output: Output): { readonly type: number; readonly flags: number; readonly stream: number; readonly payload: Buffer }[] {
  const { size } = output;
  const { pieces, release } = output.take();
  const bytes = Buffer.concat(pieces);
  release();
  expect(bytes.length).toBe(size);
  expect(output.size).toBe(0);
  const found = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    const [type, flags] = [bytes[at + 3] as number, bytes[at + 4] as number];
    found.push({ type, flags, stream: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + 9, end) });
    at = end;
  }
  return found;
}

test('frames come in the order in which they were made, small and large', () => {
  const output = new Output();
  expect(output.take().pieces).toEqual([]);
  for (let round = 0; round < 3; round++) {
    const sizes = Array.from({ length: 400 }, (_, index) => (index * 977) % (index % 7 === 0 ? 16_384 : 700));
    for (const [index, size] of sizes.entries()) {
      const piece = Buffer.alloc(size + 20, index);
      output.data(index + 1, piece, 10, size + 10);
    }
    const found = frames(output);
    expect(found.map(({ stream, payload }) => [stream, payload.length])).toEqual(sizes.map((size, index) => [index + 1, size]));
    expect(found.every(({ payload, stream }) => payload.every((byte) => byte === ((stream - 1) & 0xff)))).toBe(true);
  }
});

test('headers that are longer than a frame go on in others', () => {
  const output = new Output();
  const block = Buffer.from(Array.from({ length: 40_000 }, (_, index) => index & 0xff));
  output.headers(7, block, true);
  output.headers(9, block.subarray(0, 16_384), false);
  const found = frames(output);
  expect(found.map(({ type, flags, stream, payload }) => [type, flags, stream, payload.length])).toEqual([
    [1, 1, 7, 16_384],
    [9, 0, 7, 16_384],
    [9, 4, 7, 7_232],
    [1, 4, 9, 16_384],
  ]);
  expect(Buffer.concat(found.slice(0, 3).map(({ payload }) => payload))).toEqual(block);
});
