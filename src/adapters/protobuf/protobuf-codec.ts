import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { create, fromBinary, isFieldSet, ScalarType, toBinary } from '@bufbuild/protobuf';
import type { InvalidIssue, SpecCodec } from '../../resource/index.ts';
import { Bytes, invalid } from '../../resource/index.ts';

type Plain = Readonly<Record<string, unknown>>;

/** Types of 64 bits, which the messages hold as bigint. */
const wide: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
  ScalarType.SINT64,
]);

/**
 * How the specs of a type travel as protobuf: by a message descriptor, as `@bufbuild/protoc-gen-es` writes it or a descriptor
 * file holds it. A spec has the fields of the message by their names in TypeScript: numbers, text, lists and maps as they are,
 * 64-bit integers as
 * bigint where a number would not be exact, bytes as `Bytes`, enums as their numbers, the set field of a oneof like any other, and fields
 * that are not set left out. Nothing is lost on the way: Invalid for a key of a spec that the message has no field for, and for
 * a message with a field that the descriptor does not know.
 */
export function protobufCodec<Spec>(desc: DescMessage): SpecCodec<Spec> {
  return {
    encode: (spec) => toBinary(desc, messageOf(desc, spec, 'spec')),
    decode: (bytes) => specOf(desc, fromBinary(desc, bytes), 'spec') as Spec,
  };
}

function messageOf(desc: DescMessage, spec: unknown, path: string): Message {
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec) || Bytes.is(spec))
    refuse(path, `expected a map, as ${desc.name} is`);
  const values = spec as Plain;
  const init: Record<string, unknown> = {};
  const known = new Set(desc.fields.map(({ localName }) => localName));
  for (const key of Object.keys(values))
    if (!known.has(key)) refuse(`${path}.${key}`, `${desc.typeName} has no such field, so it would be lost`);
  for (const field of desc.fields) {
    const value = values[field.localName];
    if (value === undefined) continue;
    const converted = toField(field, value, `${path}.${field.localName}`);
    const { oneof } = field;
    if (oneof === undefined) init[field.localName] = converted;
    else if (init[oneof.localName] === undefined) init[oneof.localName] = { case: field.localName, value: converted };
    else refuse(`${path}.${field.localName}`, `only one of ${oneof.fields.map(({ localName }) => localName).join(', ')} may be set`);
  }
  return create(desc, init);
}

function toField(field: DescField, value: unknown, path: string): unknown {
  const item = (one: unknown, at: string): unknown => {
    if (field.message !== undefined) return messageOf(field.message, one, at);
    if (Bytes.is(one)) return one.toUint8Array();
    return Number.isSafeInteger(one) && wide.has(field.scalar) ? BigInt(one as number) : one;
  };
  switch (field.fieldKind) {
    case 'list':
      if (!Array.isArray(value)) refuse(path, 'expected a list');
      return (value as readonly unknown[]).map((one, index) => item(one, `${path}[${index}]`));
    case 'map':
      if (typeof value !== 'object' || value === null) refuse(path, 'expected a map');
      return Object.fromEntries(Object.entries(value as Plain).map(([key, one]) => [key, item(one, `${path}.${key}`)]));
    default:
      return item(value, path);
  }
}

function specOf(desc: DescMessage, message: Message, path: string): Plain {
  const [unknown] = message.$unknown ?? [];
  if (unknown !== undefined) refuse(path, `field ${unknown.no} of ${desc.typeName} is not known here, so it would be lost`);
  const spec: Record<string, unknown> = {};
  for (const field of desc.fields) {
    if (!isFieldSet(message, field) && hasPresence(field)) continue;
    const values = message as unknown as Plain;
    const { oneof, localName } = field;
    const value = oneof === undefined ? values[localName] : (values[oneof.localName] as { readonly value: unknown }).value;
    spec[localName] = fromField(field, value, `${path}.${localName}`);
  }
  return spec;
}

/** Whether a field may be absent, instead of having its default. */
function hasPresence(field: DescField): boolean {
  return field.oneof !== undefined || field.fieldKind === 'message' || field.proto.proto3Optional;
}

function fromField(field: DescField, value: unknown, path: string): unknown {
  const item = (one: unknown, at: string): unknown => {
    if (field.message !== undefined) return specOf(field.message, one as Message, at);
    if (one instanceof Uint8Array) return Bytes.from(one);
    return typeof one === 'bigint' && Number.isSafeInteger(Number(one)) ? Number(one) : one;
  };
  if (field.fieldKind === 'list') return (value as readonly unknown[]).map((one, index) => item(one, `${path}[${index}]`));
  if (field.fieldKind === 'map')
    return Object.fromEntries(Object.entries(value as Plain).map(([key, one]) => [key, item(one, `${path}.${key}`)]));
  return item(value, path);
}

function refuse(path: string, message: string): never {
  const issue: InvalidIssue = { path, message };
  throw invalid([issue]);
}
