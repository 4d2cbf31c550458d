import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  Bytes,
  DefinitionRegistry,
  defineResource,
  describeDefinition,
  freezeSpec,
  makeResource,
  resourceDefinitionDefinition,
  tombstone,
} from '../resource/index.ts';
import type { StateEvent } from '../state/index.ts';
import { unavailable } from '../state/index.ts';
import { decode } from './codec.ts';
import { decodeEvent, encodeEvent, encodeWatchResponse } from './event-codec.ts';
import { isForeignSpec, visibleSpec } from './foreign-spec.ts';
import type { WireSpec } from './messages.ts';
import { resourceCodec, watchResponseCodec } from './messages.ts';
import { ResourceCodec } from './resource-codec.ts';

const metadata = { namespace: 'default', type: 'Things.example.dev', id: 'a' };
const numbers = defineResource({
  type: metadata.type,
  spec: z.object({ n: z.number() }),
  codec: { encode: ({ n }) => Uint8Array.of(n), decode: ([n = 0]) => ({ n }) },
});
const plain = new ResourceCodec();
const typed = new ResourceCodec(new DefinitionRegistry([numbers]));
const uncoded = new ResourceCodec(new DefinitionRegistry([defineResource({ type: metadata.type, spec: z.object({ n: z.number() }) })]));

/** Whatever holds the bytes. */
const forms = (spec: WireSpec | undefined) => spec && [[...spec.protoSpec], spec.yamlSpec];

describe('specs', () => {
  test('of a type with a codec travel in both forms; the protobuf form counts', () => {
    const wire = typed.toWire(numbers.create({ id: 'a', spec: { n: 7 } }));
    expect(wire.spec).toEqual({ protoSpec: Uint8Array.of(7), yamlSpec: '{"n":7}' });
    expect(typed.fromWire({ ...wire, spec: { protoSpec: Uint8Array.of(9), yamlSpec: '{"n":7}' } }).spec).toEqual({ n: 9 });
    expect(typed.fromWire({ ...wire, spec: { protoSpec: new Uint8Array(), yamlSpec: 'n: 8' } }).spec).toEqual({ n: 8 });
    // What came in neither form is an empty message.
    expect(typed.fromWire({ ...wire, spec: { protoSpec: new Uint8Array(), yamlSpec: '' } }).spec).toEqual({ n: 0 });
  });

  test('of a type without a codec travel as YAML, with the protobuf form left out', () => {
    const bytes = uncoded.encode(makeResource({ metadata, spec: { n: 7 } }));
    const { spec } = decode(resourceCodec, bytes);
    expect(spec?.yamlSpec).toBe('{"n":7}');
    // Field 1 of the spec would be its first byte.
    expect(bytes.includes(Buffer.from('\x12\x09\x12\x07{"n":7}'))).toBe(true);
  });

  test.each([
    ['protobuf only', Uint8Array.of(0, 255, 1), ''],
    ['both forms', Uint8Array.of(8, 1), 'value: 1\n'],
    ['YAML in its own way', new Uint8Array(), 'value:   1 # kept\nlist: [ a ]\n'],
    ['a YAML that is no plain data here', new Uint8Array(), 'when: !custom {a: 1}\n'],
    ['nothing at all', new Uint8Array(), ''],
    ['compact', new Uint8Array(), '{"a":[1,null,"x"]}'],
    ['a number that would be rounded', new Uint8Array(), '{"a":9007199254740993}'],
    ['the marker itself', new Uint8Array(), '{"$wire":{"yaml":"x","proto":"y"}}'],
    ['keys that come twice', new Uint8Array(), '{"a":1,"a":2}'],
    ['a very deep text', new Uint8Array(), '['.repeat(100_000)],
    ['keys of prototypes', new Uint8Array(), '{"__proto__":{"polluted":1},"constructor":{"prototype":1}}'],
  ])('of an unknown type pass through byte for byte: %s', (_name, protoSpec, yamlSpec) => {
    const resource = plain.fromWire({ ...plain.toWire(makeResource({ metadata, spec: {} })), spec: { protoSpec, yamlSpec } });
    // What is stored is plain data, so it survives every store.
    const stored = makeResource({ metadata: { ...metadata, labels: { changed: 'yes' } }, spec: freezeSpec(resource.spec) });
    expect(forms(plain.toWire(stored).spec)).toEqual(forms({ protoSpec, yamlSpec }));
    expect(forms(decode(resourceCodec, plain.encode(stored)).spec)).toEqual(forms({ protoSpec, yamlSpec }));
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('a protobuf form that nobody here can read is kept, also for a known type', () => {
    const wire = { ...uncoded.toWire(makeResource({ metadata, spec: {} })), spec: { protoSpec: Uint8Array.of(1), yamlSpec: 'n: 1\n' } };
    const resource = uncoded.fromWire(wire);
    expect(isForeignSpec(resource.spec)).toBe(true);
    expect(visibleSpec(resource.spec)).toEqual({ n: 1 });
    expect(forms(uncoded.toWire(resource).spec)).toEqual(forms(wire.spec));
  });

  test('of a known type are checked, not kept: duplicate keys, depth, rounding', () => {
    const wire = (yamlSpec: string) => ({
      ...uncoded.toWire(makeResource({ metadata, spec: {} })),
      spec: { protoSpec: new Uint8Array(), yamlSpec },
    });
    expect(() => uncoded.fromWire(wire('{"n":1,"n":2}'))).toThrow(/twice/);
    expect(() => uncoded.fromWire(wire(`${'['.repeat(5000)}${']'.repeat(5000)}`))).toThrow(/nested deeper/);
    expect(() => uncoded.fromWire(wire('{"n":1e400}'))).toThrow(/finite/);
    expect(() => uncoded.fromWire(wire('{"__proto__":1}'))).toThrow(/not allowed/);
    expect(uncoded.fromWire(wire('{"n":9007199254740993}')).spec).toEqual({ n: 9007199254740993n });
  });

  test('bytes and large integers travel exactly', () => {
    const spec = { big: 2n ** 70n, bytes: Bytes.from(Uint8Array.of(0, 1, 255)), text: '\u2028\u0085\ufeff' };
    const again = plain.fromWire(decode(resourceCodec, plain.encode(makeResource({ metadata, spec }))));
    expect(again.spec).toEqual(freezeSpec(spec));
  });

  test('definitions of types carry the protobuf form that foreign tools read', () => {
    const resource = describeDefinition(numbers);
    const { spec } = plain.toWire(resource);
    expect(
      Buffer.from(spec?.protoSpec ?? [])
        .toString('latin1')
        .startsWith('\n\x12Things.example.dev\x12\x05Thing\x1a\x07default'),
    ).toBe(true);
    expect(plain.fromWire(plain.toWire(resource)).spec).toEqual(resource.spec);
    expect(resourceDefinitionDefinition.from(plain.fromWire(plain.toWire(resource))).spec.allAliases).toContain('things');
  });
});

describe('metadata', () => {
  const wire = plain.toWire(makeResource({ metadata, spec: {} }));
  const changed = (change: object) => ({ ...wire, metadata: { ...wire.metadata, ...change } as NonNullable<typeof wire.metadata> });

  test.each([
    ['an empty version', { version: '' }, /version.*expected a decimal number/],
    ['a negative version', { version: '-1' }, /version/],
    ['a version beyond 64 bits', { version: '18446744073709551616' }, /version/],
    ['an empty phase', { phase: '' }, /phase.*expected running or tearingDown/],
    ['another phase', { phase: 'RUNNING' }, /phase/],
    ['no id', { id: '' }, /metadata\.id/],
    ['control characters', { id: 'a\u0000b' }, /control/],
    ['a name over 1024 bytes', { namespace: 'ü'.repeat(513) }, /1024/],
    ['__proto__ as a label', { labels: JSON.parse('{"__proto__":"x"}') }, /__proto__/],
  ])('%s is refused', (_name, change, expected) => {
    expect(() => plain.fromWire(changed(change))).toThrow(expected);
  });

  test.each(['../../etc/passwd', '%2e%2e', 'var/run', 'ａdmin', 'constructor', 'toString'])('%s is an inert id', (id) => {
    expect(plain.fromWire(changed({ id })).metadata.id).toBe(id);
  });

  test('the largest version, undefined, and every field come through', () => {
    const full = {
      ...metadata,
      version: '18446744073709551615',
      uid: '12',
      owner: 'O',
      phase: 'tearingDown' as const,
      finalizers: ['b', 'a'],
      labels: { constructor: 'x' },
      annotations: { a: '' },
      created: '2026-01-02T03:04:05.000000006Z',
      updated: '2026-01-02T03:04:05.1Z',
    };
    const resource = makeResource({ metadata: full, spec: {} });
    const again = plain.fromWire(decode(resourceCodec, plain.encode(resource)));
    expect(again.metadata).toEqual({ ...full, updated: '2026-01-02T03:04:05.100Z' });
    expect(plain.fromWire(changed({ version: 'undefined' })).metadata.version).toBe('undefined');
  });

  test('a resource without metadata or without a spec is refused', () => {
    expect(() => plain.fromWire(undefined)).toThrow(/metadata/);
    expect(() => plain.fromWire({ spec: { protoSpec: new Uint8Array(), yamlSpec: '' } })).toThrow(/metadata/);
    expect(() => plain.fromWire({ ...(wire.metadata && { metadata: wire.metadata }) })).toThrow(/needs a spec/);
  });
});

describe('events', () => {
  const kind = { namespace: 'default', type: metadata.type };
  const resource = makeResource({ metadata: { ...metadata, version: '5' }, spec: { n: 1 } });
  const there = (event: StateEvent) => {
    const [wire] = decode(watchResponseCodec, encodeWatchResponse([encodeEvent(event, kind, plain)])).event;
    return { wire, event: wire && decodeEvent(wire, plain) };
  };
  const bookmark = Bytes.from(Uint8Array.of(1, 2));

  test.each<[StateEvent]>([
    [{ type: 'created', resource, revision: 5, bookmark }],
    [{ type: 'updated', resource, old: resource, revision: 6, bookmark }],
    [{ type: 'updated', resource, revision: 6, resync: true }],
    [{ type: 'destroyed', resource, revision: 7 }],
    [{ type: 'destroyed', resource: tombstone({ ...kind, id: 'x' }) }],
    [{ type: 'bootstrapped', revision: 0, bookmark }],
    [{ type: 'noop', revision: 9, bookmark }],
  ])('%# come back as they were', (event) => expect(there(event).event).toEqual(event));

  test('errors come back with their code', () => {
    expect(there({ type: 'errored', error: unavailable('gone') }).event).toMatchObject({
      type: 'errored',
      error: { code: 'Unavailable', message: 'gone' },
    });
    expect(there({ type: 'kindErrored', kind, error: unavailable('gone') }).event).toMatchObject({ type: 'kindErrored', kind });
  });

  test('markers carry a placeholder: the kind, no id, version undefined, an empty spec', () => {
    for (const type of ['bootstrapped', 'noop'] as const) {
      const placeholder = there({ type, revision: 3, bookmark }).wire?.resource;
      expect(placeholder?.metadata).toMatchObject({ ...kind, id: '', version: 'undefined', phase: 'running' });
      expect(placeholder?.spec).toEqual({ protoSpec: new Uint8Array(), yamlSpec: '' });
    }
  });

  test('markers leave nothing behind, however many watches are told', () => {
    const wide = new ResourceCodec();
    const resource = makeResource({ metadata, spec: {} });
    const bytes = wide.encode(resource);
    const long = { namespace: 'n'.repeat(1024), type: 't'.repeat(1024) };
    for (let count = 0; count < 10_000; count++) encodeEvent({ type: 'noop', bookmark }, long, wide);
    // What is worth keeping is still there.
    expect(wide.encode(resource)).toBe(bytes);
  });

  test('a tombstone carries an empty spec, not none', () => {
    expect(there({ type: 'destroyed', resource: tombstone({ ...kind, id: 'x' }) }).wire?.resource?.spec).toBeDefined();
  });

  test('an event that would be too large goes without its old value', () => {
    const big = makeResource({ metadata: { ...metadata, version: '5' }, spec: { text: 'x'.repeat(2_000_000) } });
    const { event } = there({ type: 'updated', resource: big, old: big, revision: 6 });
    expect(event).toMatchObject({ type: 'updated', revision: 6 });
    expect(event).not.toHaveProperty('old');
  });

  test('an event of a type that is not known is left out, not taken for another', () => {
    expect(decodeEvent({ eventType: 17, resync: false, errorCode: '', errorNamespace: '', errorType: '' }, plain)).toBeUndefined();
  });

  test('an event is encoded once for all who watch, a marker for each kind', () => {
    const event: StateEvent = Object.freeze({ type: 'created', resource, revision: 5, bookmark: Bytes.from(Uint8Array.of(5)) });
    expect(encodeEvent(event, kind, plain)).toBe(encodeEvent(event, { namespace: 'other', type: 'Others' }, plain));
    const marker: StateEvent = Object.freeze({ type: 'noop', revision: 5 });
    expect(encodeEvent(marker, kind, plain)).not.toEqual(encodeEvent(marker, { namespace: 'other', type: 'Others' }, plain));
  });
});
