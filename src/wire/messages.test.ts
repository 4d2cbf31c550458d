import { readFileSync } from 'node:fs';
import type { DescField, DescMessage, FileRegistry } from '@bufbuild/protobuf';
import { create, createFileRegistry, equals, fromBinary, ScalarType, toBinary } from '@bufbuild/protobuf';
import type { FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import { EmptySchema, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { descriptorsText, readProto } from '../../scripts/descriptors.mjs';
import type { Codec } from './codec.ts';
import { decode, encode } from './codec.ts';
import * as control from './control-messages.ts';
import { descriptorFiles } from './descriptors.ts';
import * as state from './messages.ts';
import { controlService, stateService } from './services.ts';

const protocol = readProto('state.proto');
const ours = readProto('control.proto');
const registry: FileRegistry = createFileRegistry(
  create(FileDescriptorSetSchema, {
    file: descriptorFiles.map(({ bytes }): FileDescriptorProto => fromBinary(FileDescriptorProtoSchema, Buffer.from(bytes, 'base64'))),
  }),
);

function messageOf(name: string): DescMessage {
  const found = registry.getMessage(name);
  if (found === undefined) throw new Error(`no message ${name}`);
  return found;
}

/** A value in the form of our codecs. */
function anyOf(desc: DescMessage): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(Object.fromEntries(desc.fields.map((field) => [field.localName, anyField(field)])), {
    requiredKeys: desc.fields.filter((field) => !field.proto.proto3Optional).map((field) => field.localName),
  });
}

const text = fc.string({ unit: 'binary', maxLength: 8 });

function anyField(field: DescField): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case 'message':
      return anyOf(field.message);
    case 'enum':
      return fc.constantFrom(...field.enum.values.map(({ number }) => number));
    case 'map':
      return fc.dictionary(
        text.filter((key) => key !== '__proto__'),
        text,
        { maxKeys: 3, noNullPrototype: true },
      );
    case 'list':
      return fc.array<unknown>(field.listKind === 'message' ? anyOf(field.message) : text, { maxLength: 3 });
    default:
      return anyScalar(field.scalar);
  }
}

function anyScalar(scalar: ScalarType): fc.Arbitrary<unknown> {
  if (scalar === ScalarType.STRING) return text;
  if (scalar === ScalarType.BOOL) return fc.boolean();
  if (scalar === ScalarType.BYTES) return fc.uint8Array({ maxLength: 8 });
  return scalar === ScalarType.INT32 ? fc.integer() : fc.maxSafeInteger();
}

/** The same value in the form of the other library. */
function theirs(desc: DescMessage, value: Readonly<Record<string, unknown>>) {
  const convert = (field: DescField, item: unknown): unknown => {
    if (field.fieldKind === 'message') return theirs(field.message, item as Record<string, unknown>);
    if (field.fieldKind === 'list' && field.listKind === 'message')
      return (item as Record<string, unknown>[]).map((one) => theirs(field.message, one));
    if (field.fieldKind === 'scalar' && field.scalar === ScalarType.INT64) return BigInt(item as number);
    return item;
  };
  const present = desc.fields.filter((field) => value[field.localName] !== undefined);
  return create(desc, Object.fromEntries(present.map((field) => [field.localName, convert(field, value[field.localName])])) as never);
}

const codecs: readonly (readonly [string, Codec<never>])[] = [
  ...Object.entries({
    Metadata: state.metadataCodec,
    Spec: state.specCodec,
    Resource: state.resourceCodec,
    LabelQuery: state.labelQueryCodec,
    IDQuery: state.idQueryCodec,
    Event: state.eventCodec,
    CreateRequest: state.createRequestCodec,
    UpdateRequest: state.updateRequestCodec,
    DestroyRequest: state.ownedPointerRequestCodec,
    TeardownRequest: state.ownedPointerRequestCodec,
    TeardownAndDestroyRequest: state.ownedPointerRequestCodec,
    TeardownResponse: state.teardownResponseCodec,
    ListRequest: state.listRequestCodec,
    GetResponse: state.resourceAnswerCodec,
    ListResponse: state.resourceAnswerCodec,
    CreateResponse: state.resourceAnswerCodec,
    UpdateResponse: state.resourceAnswerCodec,
    WatchOptions: state.watchOptionsCodec,
    WatchRequest: state.watchRequestCodec,
    WatchResponse: state.watchResponseCodec,
  }).map(([name, codec]) => [`cosi.resource.${name}`, codec as Codec<never>] as const),
  ...Object.entries({
    InfoResponse: control.infoResponseCodec,
    ValidateRequest: control.validateRequestCodec,
    ValidateResponse: control.validateResponseCodec,
    ReadinessResponse: control.readinessResponseCodec,
    NotesResponse: control.notesResponseCodec,
    FinalizersResponse: control.finalizersResponseCodec,
    WaitForRevisionRequest: control.waitForRevisionRequestCodec,
    GraphResponse: control.graphResponseCodec,
    DestroyIncarnationRequest: control.destroyIncarnationRequestCodec,
    ReleaseFinalizerRequest: control.releaseFinalizerRequestCodec,
    ReleaseFinalizerResponse: control.releaseFinalizerResponseCodec,
    FencedWriteRequest: control.fencedWriteRequestCodec,
    FencedWriteResponse: control.fencedWriteResponseCodec,
    WatchKindsRequest: control.watchKindsRequestCodec,
    WatchNamespacesRequest: control.watchNamespacesRequestCodec,
  }).map(([name, codec]) => [`steadystate.v1.${name}`, codec as Codec<never>] as const),
];

describe('our codecs agree with another library on the messages of proto/', () => {
  test.each(codecs)('%s', (name, codec) => {
    const desc = messageOf(name);
    fc.assert(
      fc.property(anyOf(desc), (value) => {
        const other = theirs(desc, value);
        expect(equals(desc, fromBinary(desc, encode(codec, value as never)), other)).toBe(true);
        expect(decode(codec, toBinary(desc, other))).toEqual(value);
      }),
      { numRuns: 50 },
    );
  });

  test('the options of a get are skipped, as all that is unknown', () => {
    const get = messageOf('cosi.resource.GetRequest');
    const bytes = toBinary(get, create(get, { namespace: 'a', type: 'b', id: 'c', options: {} } as never));
    expect(decode(state.getRequestCodec, bytes)).toEqual({ namespace: 'a', type: 'b', id: 'c' });
    expect(decode(state.emptyCodec, toBinary(EmptySchema, create(EmptySchema)))).toEqual({});
  });

  test('missing fields are their defaults, missing messages stay missing', () => {
    expect(decode(state.watchRequestCodec, new Uint8Array())).toEqual({
      namespace: '',
      type: '',
      options: {
        bootstrapContents: false,
        tailEvents: 0,
        labelQuery: [],
        aggregated: false,
        bootstrapBookmark: false,
        strict: false,
        caughtUp: false,
      },
      apiVersion: 0,
    });
    expect(decode(state.resourceAnswerCodec, new Uint8Array())).toEqual({});
  });

  test.each([
    ['a length beyond the end', [0x0a, 0x7f, 0x00]],
    ['text that is not UTF-8', [0x0a, 0x02, 0xff, 0xfe]],
    ['half a tag', [0x80]],
    ['another wire type', [0x08, 0x01]],
    ['field number 0', [0x02, 0x00]],
  ])('refused: %s', (_name, bytes) => {
    expect(() => decode(state.getRequestCodec, Uint8Array.from(bytes))).toThrow();
  });

  test('the calls are those of the services in proto/', () => {
    for (const [{ packageName, services }, service, prefix] of [
      [protocol, stateService, 'State'],
      [ours, controlService, 'Control'],
    ] as const) {
      const expected = [...(services.get(prefix) ?? [])].map(([name, { stream }]) => [`/${packageName}.${prefix}/${name}`, stream]);
      expect(Object.values(service).map(({ path, responseStream }) => [path, responseStream])).toHaveLength(expected.length);
      expect(Object.values(service).map(({ path, responseStream }) => [path, responseStream])).toEqual(expect.arrayContaining(expected));
    }
  });

  test('the descriptors are those of the files in proto/; node scripts/descriptors.mjs writes them anew', () => {
    expect(readFileSync(new URL('./descriptors.ts', import.meta.url), 'utf8')).toBe(descriptorsText());
    for (const { symbols, imports } of descriptorFiles) {
      for (const symbol of symbols.split(' ')) expect(symbol).toMatch(/^[\w.]+$/);
      for (const name of imports) expect(descriptorFiles.map((file) => file.name)).toContain(name);
    }
  });
});
