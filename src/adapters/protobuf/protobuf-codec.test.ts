import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readProto } from '../../../scripts/descriptors.mjs';
import { Bytes, DefinitionRegistry, defineResource } from '../../resource/index.ts';
import { ResourceCodec } from '../../wire/index.ts';
import { protobufCodec } from './index.ts';

const { file } = readProto(
  'rooms.proto',
  `package example;
message Place {
  string name = 1;
}

message Room {
  enum Kind {
    PLAIN = 0;
    GREEN = 1;
  }
  string title = 1;
  int32 seats = 2;
  int64 counter = 3;
  bytes key = 4;
  Kind kind = 5;
  optional string note = 6;
  repeated Place place = 7;
  map<string, string> tags = 8;
  Place main = 9;
  oneof price {
    int32 euros = 10;
    string text = 11;
  }
}

message Newer {
  string title = 1;
  string later = 99;
}
`,
);
const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
const message = (name: string) => {
  const found = registry.getMessage(`example.${name}`);
  if (found === undefined) throw new Error(name);
  return found;
};
const codec = protobufCodec<Record<string, unknown>>(message('Room'));
const full = {
  title: 'Blue',
  seats: 4,
  counter: 2n ** 60n,
  key: Bytes.from(Uint8Array.of(0, 255)),
  kind: 1,
  note: '',
  place: [{ name: 'a' }, { name: '' }],
  tags: { x: 'y' },
  main: { name: 'm' },
  text: 'free',
};
const empty = { title: '', seats: 0, counter: 0, key: Bytes.from(new Uint8Array()), kind: 0, place: [], tags: {} };

describe('a codec of a descriptor', () => {
  test('gives back what it was given, with everything and with nothing set', () => {
    expect(codec.decode(codec.encode(full))).toEqual(full);
    expect(codec.decode(codec.encode({}))).toEqual(empty);
    expect(codec.encode({})).toHaveLength(0);
    expect(codec.decode(codec.encode({ counter: 5 }))).toMatchObject({ counter: 5 });
  });

  test('writes what other programs read', () => {
    const read = fromBinary(message('Room'), codec.encode(full)) as unknown as Record<string, unknown>;
    expect(read).toMatchObject({ title: 'Blue', counter: 2n ** 60n, price: { case: 'text', value: 'free' } });
  });

  test('refuses what it would lose, by name', () => {
    expect(() => codec.encode({ ...full, sheats: 1 })).toThrow(/spec\.sheats.*no such field/);
    expect(() => codec.encode({ ...full, place: [{ nmae: 'a' }] })).toThrow(/spec\.place\[0\]\.nmae/);
    expect(() => codec.encode({ ...full, euros: 3 })).toThrow(/only one of euros, text/);
    expect(() => codec.encode('text' as never)).toThrow(/expected a map/);
    expect(() => codec.encode({ place: 'a' })).toThrow(/expected a list/);
    const newer = message('Newer');
    expect(() => codec.decode(toBinary(newer, create(newer, { title: 'x', later: 'y' } as never)))).toThrow(/field 99 of example.Room/);
    expect(() => codec.decode(Uint8Array.of(0x0a, 0x7f))).toThrow();
  });

  test('makes a definition whose resources travel in both forms', () => {
    const rooms = defineResource({
      type: 'Rooms.example.dev',
      spec: z.object({ title: z.string(), seats: z.number().default(0) }).loose(),
      codec: codec as never,
    });
    const wire = new ResourceCodec(new DefinitionRegistry([rooms]));
    const resource = rooms.create({ id: 'a', spec: { title: 'Blue', seats: 4 } });
    const sent = wire.toWire(resource);
    expect(sent.spec?.yamlSpec).toBe('{"title":"Blue","seats":4}');
    expect(codec.decode(sent.spec?.protoSpec as Uint8Array)).toMatchObject({ title: 'Blue', seats: 4 });
    expect(wire.fromWire(sent).spec).toMatchObject({ title: 'Blue', seats: 4 });
  });
});
