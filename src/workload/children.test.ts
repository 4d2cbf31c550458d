import { describe, expect, test } from 'vitest';
import { digest } from '../resource/index.ts';
import { ChildMemory } from './child-memory.ts';
import { areDesired, desiredChanged, desiredDigest, needsUpdate, prepareChildren } from './children.ts';
import { parentAnnotation, parentIdLabel, readParent } from './identity.ts';
import type { Desired, InventoryEntry, Live, WorkloadView } from './port.ts';

const view = (uid = 'u1'): WorkloadView => ({
  key: { group: 'example.dev', kind: 'Apps', namespace: 'default', name: 'app' },
  uid,
  version: '1',
  generation: 1,
  deleting: false,
  finalizers: [],
  labels: {},
  annotations: {},
  spec: {},
  status: undefined,
});
const child = (name: string, more: Partial<Desired> = {}): Desired => ({
  ref: { group: 'example.dev', kind: 'Boxes', version: '', namespace: 'default', name },
  labels: { tier: 'a' },
  annotations: {},
  body: { size: 1 },
  ...more,
});
const liveOf = (desired: Desired, more: Partial<Live> = {}): Live => ({
  ref: desired.ref,
  uid: 'x',
  version: '7',
  generation: undefined,
  deleting: false,
  finalizers: [],
  labels: desired.labels,
  annotations: desired.annotations,
  owner: '',
  body: desired.body,
  status: undefined,
  ...more,
});

describe('prepareChildren', () => {
  test('every child bears its parent: label for selection, annotation with the uid', () => {
    const [prepared] = prepareChildren(view(), [child('a')]);
    expect(prepared?.labels).toEqual({ tier: 'a', [parentIdLabel]: expect.stringMatching(/^[A-Za-z0-9]{32}$/) });
    expect(readParent({ annotations: prepared?.annotations ?? {} })).toEqual({ ...view().key, uid: 'u1' });
    expect(prepareChildren(view('u2'), [child('a')])[0]?.labels).toEqual(prepared?.labels);
  });

  test('order of deletion: the level of dependsOn, else the position, else what the child says', () => {
    const orders = (children: readonly Desired[]): unknown => prepareChildren(view(), children).map(({ order }) => order);
    expect(orders([child('a'), child('b'), child('c', { options: { deletionOrder: 9 } })])).toEqual([0, 1, 9]);
    expect(
      orders([
        child('a', { dependsOn: ['Boxes/b'] }),
        child('b', { dependsOn: [] }),
        child('c', { dependsOn: ['Boxes/b'] }),
        child('d', { dependsOn: ['Boxes/a', 'Boxes/b'] }),
      ]),
    ).toEqual([1, 0, 1, 2]);
  });

  test.each([
    ['the same child twice', [child('a'), child('a', { name: 'other' })], /two children are both Boxes default\/a/],
    ['the same name twice', [child('a', { name: 'x' }), child('b', { name: 'x' })], /two children are named x/],
    ['a dependency on nothing', [child('a', { dependsOn: ['Boxes/z'] })], /depends on Boxes\/z, which is not a child/],
    [
      'a circle',
      [child('a', { dependsOn: ['Boxes/b'] }), child('b', { dependsOn: ['Boxes/a'] })],
      /in a circle: Boxes\/a → Boxes\/b → Boxes\/a/,
    ],
    ['a body that is no plain data', [child('a', { body: { at: new Date(0) } })], /Boxes\/a: .*spec\.at/],
  ])('%s is refused for good', (_what, children, message) => {
    expect(() => prepareChildren(view(), children)).toThrow(message);
    expect(() => prepareChildren(view(), children)).toThrow(expect.objectContaining({ name: 'TerminalError' }));
  });

  test('what an author changes later does not change a prepared child', () => {
    const body = { size: 1 };
    const [prepared] = prepareChildren(view(), [child('a', { body })]);
    body.size = 2;
    expect(prepared?.body).toEqual({ size: 1 });
    expect(Object.isFrozen(prepared?.body)).toBe(true);
  });
});

describe('desiredDigest', () => {
  test('does not depend on marks, order or policies', () => {
    const [one] = prepareChildren(view('u1'), [child('a')]);
    const [, two] = prepareChildren(view('u2'), [child('z'), child('a', { options: { onPrune: 'orphan' } })]);
    expect(desiredDigest(one as Desired)).toBe(desiredDigest(two as Desired));
    const [label] = prepareChildren(view(), [child('a', { labels: { tier: 'b' } })]);
    const [body] = prepareChildren(view(), [child('a', { body: { size: 2 } })]);
    expect(new Set([one, label, body].map((each) => desiredDigest(each as Desired))).size).toBe(3);
  });

  test('a new scheme alone is no change', () => {
    const entry = (text: string): InventoryEntry => ({ digest: text }) as InventoryEntry;
    expect(desiredChanged(entry('1:abc'), '1:abc')).toBe(false);
    expect(desiredChanged(entry('1:abc'), '1:abd')).toBe(true);
    expect(desiredChanged(entry('1:abc'), '2:zzz')).toBe(false);
    expect(desiredChanged(entry(''), '1:abc')).toBe(true);
    expect(desiredChanged(undefined, '1:abc')).toBe(true);
  });
});

describe('ChildMemory', () => {
  test('keeps the objects of the last time where they say the same', () => {
    const memory = new ChildMemory();
    const first = memory.intern(prepareChildren(view(), [child('a'), child('b')]));
    const second = memory.intern(prepareChildren(view(), [child('a'), child('b', { body: { size: 2 } })]));
    expect(second[0]).toBe(first[0]);
    expect(second[1]).not.toBe(first[1]);
    expect(memory.intern(prepareChildren(view('u2'), [child('a')]))[0]).not.toBe(first[0]);
  });

  test('what the store made of a desired state is not asked for again, until either moves', () => {
    const memory = new ChildMemory();
    const [desired] = prepareChildren(view(), [child('a')]) as [Desired];
    const stored = liveOf(desired, { body: { size: 1, padding: 'put in by the store' } });
    memory.wrote(desired, 'd1', stored);
    expect(memory.isWritten(desired, 'd1', stored)).toBe(true);
    expect(memory.isWritten(desired, 'd2', stored)).toBe(false);
    expect(memory.isWritten(desired, 'd1', { ...stored, version: '8' })).toBe(false);
    expect(memory.isWritten(desired, 'd1', { ...stored, uid: 'y' })).toBe(false);
    memory.forget();
    expect(memory.isWritten(desired, 'd1', stored)).toBe(false);
  });
});

test('needsUpdate and areDesired go by the diff; a missing child is not as desired', () => {
  const diff = (desired: Desired, live: Live): 'same' | 'differs' => (digest(desired.body) === digest(live.body) ? 'same' : 'differs');
  const a = child('a');
  expect(needsUpdate(diff, a, liveOf(a))).toBe(false);
  expect(needsUpdate(diff, a, liveOf(a, { body: {} }))).toBe(true);
  expect(areDesired(diff, [{ child: a, live: liveOf(a) }])).toBe(true);
  expect(areDesired(diff, [{ child: a, live: undefined }])).toBe(false);
  expect(areDesired(diff, [])).toBe(true);
});

test('a mark that cannot be read is nobody', () => {
  for (const text of ['', '{', '[]', '{"group":"g"}', '{"group":1,"kind":"K","namespace":"n","name":"a","uid":"u"}'])
    expect(readParent({ annotations: { [parentAnnotation]: text } })).toBeUndefined();
  expect(readParent({ annotations: {} })).toBeUndefined();
});
