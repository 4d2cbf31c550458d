import { describe, expect, test } from 'vitest';
import { HeaderUnpacker, packHeaders, tableBytes } from './hpack.ts';

const unpacker = () => new HeaderUnpacker(16_384, 64);
const unpack = (from: HeaderUnpacker, bytes: Buffer) => from.unpack(bytes, 0, bytes.length);
const texts = (from: HeaderUnpacker, hex: string) =>
  unpack(from, Buffer.from(hex, 'hex')).fields.map(({ name, value }) => `${name}: ${value}`);
const field = (first: number, name: string, value: string): Buffer =>
  Buffer.concat([Buffer.of(first, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);

describe('the examples of RFC 7541', () => {
  const requests = [
    [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
    [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com', 'cache-control: no-cache'],
    [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com', 'custom-key: custom-value'],
  ];
  test.each([
    [
      'as they are',
      [
        '828684410f7777772e6578616d706c652e636f6d',
        '828684be58086e6f2d6361636865',
        '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
      ],
    ],
    ['packed', ['828684418cf1e3c2e5f23a6ba0ab90f4ff', '828684be5886a8eb10649cbf', '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf']],
  ])('three requests, texts %s', (_how, blocks) => {
    const from = unpacker();
    expect(blocks.map((hex) => texts(from, hex))).toEqual(requests);
  });
});

test('the oldest fields leave a table that is full, and all of them one that is made smaller', () => {
  const from = unpacker();
  // 1,032 and more each: three fit, not four.
  const large = (name: string) =>
    Buffer.concat([Buffer.of(0x40, 1), Buffer.from(name), Buffer.of(0x7f, 0xe9, 0x07), Buffer.alloc(1128, 0x78)]);
  for (const name of ['a', 'b', 'c', 'd']) unpack(from, large(name));
  const named = (index: number) => unpack(from, Buffer.of(0x80 | index)).fields[0]?.name;
  expect([62, 63, 64].map(named)).toEqual(['d', 'c', 'b']);
  expect(() => named(65)).toThrow('no field 65');
  const shrunk = unpack(from, Buffer.concat([Buffer.of(0x20), Buffer.of(0x82)]));
  expect(shrunk.fields).toMatchObject([{ name: ':method' }]);
  expect(() => named(62)).toThrow('no field 62');
  // It has no room now, which is no fault.
  unpack(from, field(0x40, 'e', 'f'));
  expect(() => named(62)).toThrow('no field 62');
  expect(() => unpack(from, Buffer.of(0x3f, 0xe2, 0x1f))).toThrow(`${tableBytes} bytes, not 4097`);
});

test('what is too much is told, not kept; the table holds it nevertheless', () => {
  const from = new HeaderUnpacker(100, 3);
  const list = unpack(from, Buffer.concat([field(0x40, 'a', '1'), field(0x40, 'b', 'x'.repeat(60)), field(0x40, 'c', '3')]));
  expect(list.tooLarge).toBe(true);
  expect(list.fields.map(({ name }) => name)).toEqual(['a']);
  expect(unpack(from, Buffer.of(0xbe)).fields).toMatchObject([{ name: 'c', value: '3' }]);
  expect(unpack(from, Buffer.of(0x82, 0x82, 0x82, 0x82))).toMatchObject({ tooLarge: true });
  // A table of one large field, named over and over, costs what the block costs.
  const bomb = unpacker();
  unpack(bomb, Buffer.concat([Buffer.of(0x40, 1, 0x61, 0x7f, 0xa1, 0x1e), Buffer.alloc(4000, 0x78)]));
  const found = unpack(bomb, Buffer.alloc(60_000, 0xbe));
  expect(found.tooLarge).toBe(true);
  expect(found.fields.length).toBeLessThan(5);
});

test('blocks that end in the middle are faults, wherever it is', () => {
  const whole = Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff408825a849e95ba97d7f8925a849e95bb8e8b4bf', 'hex');
  const ends = new Set([0, 1, 2, 3, 17, 37]);
  for (let end = 0; end <= whole.length; end++) {
    const read = () => unpacker().unpack(whole, 0, end);
    if (ends.has(end)) expect(read().wellFormed).toBe(true);
    else expect(read, `${end} bytes`).toThrow();
  }
});

test('what is packed here is unpacked as it was, and leaves no table behind', () => {
  const fields = {
    ':status': '200',
    'content-type': 'application/grpc',
    'grpc-message': 'm'.repeat(126),
    long: 'l'.repeat(127),
    longer: 'r'.repeat(9_000),
    empty: '',
  };
  const from = unpacker();
  expect(Object.fromEntries(unpack(from, packHeaders(fields)).fields.map(({ name, value }) => [name, value]))).toEqual(fields);
  expect(() => unpack(from, Buffer.of(0xbe))).toThrow('no field 62');
});
