import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { expect, test } from 'vitest';
import { varintBytes, Writer } from './writer.ts';

/** The same calls on ours and on the library's writer. */
function both(
  write: (writer: Pick<Writer, 'tag' | 'bool' | 'int32' | 'int64' | 'string'> & { bytes(value: Uint8Array): unknown }) => unknown,
) {
  const ours = new Writer();
  const theirs = new BinaryWriter();
  write(ours);
  write(theirs as never);
  return { ours: ours.finish(), theirs: Buffer.from(theirs.finish()) };
}

test.each([0, 1, 127, 128, 16_383, 16_384, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1, -1, -(2 ** 31), -(2 ** 53 - 1)])(
  'the number %d',
  (value) => {
    const { ours, theirs } = both((writer) => writer.tag(1000, WireType.Varint).int64(value));
    expect(ours).toEqual(theirs);
    expect(varintBytes(Math.abs(value))).toBe(new Writer().int64(Math.abs(value)).finish().length);
  },
);

test('numbers that have no form are refused', () => {
  for (const value of [2 ** 31, -(2 ** 31) - 1, 1.5, Number.NaN]) expect(() => new Writer().int32(value)).toThrow(RangeError);
  for (const value of [2 ** 53, 1.5, Number.NaN]) expect(() => new Writer().int64(value)).toThrow(RangeError);
});

test('text of every length around the steps, of one to four bytes a letter', () => {
  for (const letter of ['a', 'é', '€', '😀', '\ud800', '\u0000', '\ufeff'])
    for (const length of [0, 1, 22, 23, 24, 25, 31, 32, 42, 43, 63, 64, 127, 128, 4_090, 5_461, 8_192, 16_384]) {
      for (const text of [letter.repeat(length), `${'a'.repeat(length)}${letter}`]) {
        const { ours, theirs } = both((writer) => writer.tag(1, WireType.LengthDelimited).string(text));
        expect(ours.equals(theirs)).toBe(true);
      }
    }
});

test('parts within parts, wherever the room has to grow', () => {
  const writer = new Writer();
  for (let start = 4_060; start < 4_100; start++)
    for (const size of [0, 1, 5, 127, 128, 300]) {
      writer.bytes(new Uint8Array(start - varintBytes(start)));
      writer.tag(1, WireType.LengthDelimited).fork().tag(2, WireType.LengthDelimited).fork();
      writer.bytes(new Uint8Array(size).fill(7)).join().join();
      const reader = new BinaryReader(writer.finish());
      reader.bytes();
      expect(reader.tag()).toEqual([1, WireType.LengthDelimited]);
      const end = reader.uint32() + reader.pos;
      expect(end).toBe(reader.len);
      expect(reader.tag()).toEqual([2, WireType.LengthDelimited]);
      expect(reader.uint32() + reader.pos).toBe(end);
      expect(reader.bytes().every((byte) => byte === 7)).toBe(true);
      expect(reader.pos).toBe(end);
    }
});

test('messages one behind the other do not touch each other, whatever their sizes', () => {
  const writer = new Writer();
  const sizes = Array.from({ length: 2_000 }, (_, index) => (index * 7_919) % (index % 50 === 0 ? 60_000 : 300));
  const messages = sizes.map((size, index) =>
    writer.tag(1, WireType.LengthDelimited).fork().bytes(new Uint8Array(size).fill(index)).join().finish(),
  );
  for (const [index, size] of sizes.entries()) {
    const reader = new BinaryReader(messages[index] as Buffer);
    reader.tag();
    reader.uint32();
    const bytes = reader.bytes();
    expect(bytes.length === size && bytes.every((byte) => byte === (index & 0xff)) && reader.pos === reader.len).toBe(true);
  }
});

test('a writer is empty after it gave its message', () => {
  const writer = new Writer();
  const first = writer.string('first').finish();
  const large = writer.bytes(new Uint8Array(3_000_000)).finish();
  expect(large).toHaveLength(3_000_004);
  expect(writer.finish()).toHaveLength(0);
  expect(writer.string('other').finish()).toEqual(Buffer.from('\u0005other'));
  expect(first).toEqual(Buffer.from('\u0005first'));
});
