import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Writer } from './writer.ts';

/** Encodes and decodes one message type; the field numbers are the protocol's. */
export interface Codec<Message> {
  write(writer: Writer, message: Message): void;
  read(reader: BinaryReader, end: number): Message;
}

/** The writer of the last message: its room has grown to what messages need. */
let idleWriter: Writer | undefined;

export function encode<Message>(codec: Codec<Message>, message: Message): Buffer {
  // Taken while it is used, so that a message within a message, or one that fails half-way, disturbs no other.
  const writer = idleWriter ?? new Writer();
  idleWriter = undefined;
  codec.write(writer, message);
  const bytes = writer.finish();
  idleWriter = writer;
  return bytes;
}

export function decode<Message>(codec: Codec<Message>, bytes: Uint8Array): Message {
  return codec.read(new BinaryReader(bytes), bytes.length);
}

/** How one field is written and read; `merge` is given what was read for the field before. */
export interface Field<Value> {
  readonly number: number;
  write(writer: Writer, value: Value): void;
  merge(reader: BinaryReader, before: Value | undefined, wireType: WireType): Value;
  /** What a missing field stands for. */
  readonly absent: () => Value;
}

type Fields<Message> = {
  readonly [Key in keyof Message]-?: Field<Exclude<Message[Key], undefined>> | OptionalField<Exclude<Message[Key], undefined>>;
};

interface OptionalField<Value> extends Field<Value> {
  readonly optional: true;
}

/** A message with these fields. Unknown fields are skipped, as proto3 asks. */
export function message<Message extends object>(fields: Fields<Message>): Codec<Message> {
  const list = Object.entries(fields) as [string & keyof Message, Field<unknown> & { readonly optional?: true }][];
  const byNumber = new Map(list.map(([name, field]) => [field.number, { name, field }]));
  return {
    write(writer, value) {
      for (const [name, field] of list) {
        const item = value[name];
        if (item !== undefined) field.write(writer, item);
      }
    },
    read(reader, end) {
      const values: Record<string, unknown> = {};
      while (reader.pos < end) {
        const [number, wireType] = reader.tag();
        const known = byNumber.get(number);
        if (known === undefined) reader.skip(wireType, number);
        else values[known.name] = known.field.merge(reader, values[known.name], wireType);
      }
      for (const [name, field] of list) if (values[name] === undefined && field.optional !== true) values[name] = field.absent();
      return values as Message;
    },
  };
}

/** A field whose presence counts: it is written even when it holds the default. */
export function optional<Value>(field: Field<Value> & { readonly explicit?: Field<Value> }): OptionalField<Value> {
  return { ...(field.explicit ?? field), optional: true };
}

function scalar<Value>(
  number: number,
  wireType: WireType,
  absent: Value,
  write: (writer: Writer, value: Value) => void,
  read: (reader: BinaryReader) => Value,
): Field<Value> & { readonly explicit: Field<Value> } {
  const always: Field<Value> = {
    number,
    absent: () => absent,
    write: (writer, value) => write(writer.tag(number, wireType), value),
    merge: (reader, _before, found) => {
      expectType(number, wireType, found);
      return read(reader);
    },
  };
  return { ...always, explicit: always, write: (writer, value) => void (value === absent || always.write(writer, value)) };
}

function expectType(number: number, expected: WireType, found: WireType): void {
  if (expected !== found) throw new RangeError(`field ${number} has wire type ${found}, expected ${expected}`);
}

/** Text that is not UTF-8 is refused, as proto3 asks. */
function readText(reader: BinaryReader): string {
  return reader.string(true);
}

export const text = (number: number) =>
  scalar<string>(number, WireType.LengthDelimited, '', (writer, value) => writer.string(value), readText);
export const boolean = (number: number) =>
  scalar<boolean>(
    number,
    WireType.Varint,
    false,
    (writer, value) => writer.bool(value),
    (reader) => reader.bool(),
  );
export const int32 = (number: number) =>
  scalar<number>(
    number,
    WireType.Varint,
    0,
    (writer, value) => writer.int32(value),
    (reader) => reader.int32(),
  );
/** A whole number that is safe in JavaScript. */
export const int64 = (number: number) =>
  scalar<number>(
    number,
    WireType.Varint,
    0,
    (writer, value) => writer.int64(value),
    (reader) => Number(reader.int64()),
  );

export const bytes = (number: number): Field<Uint8Array> & { readonly explicit: Field<Uint8Array> } => {
  const always: Field<Uint8Array> = {
    number,
    absent: () => new Uint8Array(),
    write: (writer, value) => void writer.tag(number, WireType.LengthDelimited).bytes(value),
    merge: (reader, _before, found) => {
      expectType(number, WireType.LengthDelimited, found);
      return reader.bytes().slice();
    },
  };
  return { ...always, explicit: always, write: (writer, value) => void (value.length === 0 || always.write(writer, value)) };
};

export function nested<Message>(number: number, codec: Codec<Message>): Field<Message> {
  return {
    number,
    absent: () => codec.read(new BinaryReader(new Uint8Array()), 0),
    write(writer, value) {
      writer.tag(number, WireType.LengthDelimited).fork();
      codec.write(writer, value);
      writer.join();
    },
    merge(reader, _before, found) {
      expectType(number, WireType.LengthDelimited, found);
      const length = reader.uint32();
      const end = reader.pos + length;
      if (end > reader.len) throw new RangeError(`field ${number} is longer than its message`);
      return codec.read(reader, end);
    },
  };
}

/** Bytes of an encoded message, put in as they are: what was encoded once serves many. */
export function encoded(number: number): Field<Uint8Array> {
  return bytes(number).explicit;
}

export function repeated<Value>(field: Field<Value> & { readonly explicit?: Field<Value> }): Field<readonly Value[]> {
  const item = field.explicit ?? field;
  return {
    number: field.number,
    absent: () => [],
    write(writer, values) {
      for (const value of values) item.write(writer, value);
    },
    merge(reader, before, found) {
      const values = (before ?? []) as Value[];
      values.push(item.merge(reader, undefined, found));
      return values;
    },
  };
}

const entryCodec = message<{ readonly key: string; readonly value: string }>({ key: text(1), value: text(2) });

export function textMap(number: number): Field<Readonly<Record<string, string>>> {
  const entry = nested(number, entryCodec);
  return {
    number,
    absent: () => ({}),
    write(writer, map) {
      for (const key of Object.keys(map)) entry.write(writer, { key, value: map[key] as string });
    },
    merge(reader, before, found) {
      const map = (before ?? {}) as Record<string, string>;
      const { key, value } = entry.merge(reader, undefined, found);
      // A key such as __proto__ must land as data, to be refused by name later.
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      return map;
    },
  };
}
