import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { ResourceInput } from './index.ts';
import { finishDraft, isTombstone, makeMetadata, makeResource, openDraft, sameResource, tombstone } from './index.ts';

const pointer = { namespace: 'default', type: 'Things.example.dev', id: 'a' };
const input = (metadata: object = {}, spec: unknown = { size: 1 }): ResourceInput => ({ metadata: { ...pointer, ...metadata }, spec });
const issuesOf = (make: () => unknown): string[] => {
  try {
    make();
  } catch (error) {
    const { code, issues } = error as { code: string; issues: { path: string }[] };
    expect(code).toBe('Invalid');
    return issues.map((issue) => issue.path);
  }
  return [];
};

describe('makeResource', () => {
  test('fills in what is left out, and freezes all of it', () => {
    const resource = makeResource(input());
    expect(resource.metadata).toEqual({
      ...pointer,
      version: 'undefined',
      uid: '',
      phase: 'running',
      owner: '',
      finalizers: [],
      labels: {},
      annotations: {},
      created: '',
      updated: '',
    });
    for (const part of [resource, resource.metadata, resource.metadata.labels, resource.metadata.finalizers, resource.spec])
      expect(Object.isFrozen(part)).toBe(true);
  });

  test('makes plain objects, whose mark nobody sees', () => {
    const resource = makeResource(input());
    for (const part of [resource, resource.metadata]) {
      expect(Object.getPrototypeOf(part)).toBe(Object.prototype);
      expect(structuredClone(part)).toStrictEqual(part);
      expect(inspect(part)).toMatch(/^\{/);
    }
    expect(Reflect.ownKeys(resource)).toEqual(['metadata', 'spec']);
    expect(Reflect.ownKeys(resource.metadata).join(' ')).toBe(
      'namespace type id version uid phase owner finalizers labels annotations created updated',
    );
  });

  test('gives back what it made', () => {
    const resource = makeResource(input());
    expect(makeResource(resource)).toBe(resource);
    expect(makeResource({ metadata: resource.metadata, spec: resource.spec }).metadata).toBe(resource.metadata);
    expect(makeMetadata(resource.metadata)).toBe(resource.metadata);
  });

  test('names every wrong part at once', () => {
    const labels = { good: 'x', bad: 1 as unknown as string };
    expect(
      issuesOf(() => makeResource(input({ id: '', namespace: 'a\u0000', labels, finalizers: ['', 'ok'], phase: 'gone', owner: '\ud800' }))),
    ).toEqual(['metadata.namespace', 'metadata.id', 'metadata.phase', 'metadata.owner', 'metadata.finalizers[0]', 'metadata.labels.bad']);
  });

  test.each([
    ['nothing', null, ''],
    ['text', 'x', ''],
    ['no metadata', { spec: 1 }, 'metadata'],
    ['no spec', { metadata: pointer }, 'spec'],
    ['labels as a list', input({ labels: ['a'] }), 'metadata.labels'],
    ['labels as a map object', input({ labels: new Map([['a', 'b']]) }), 'metadata.labels'],
    ['finalizers as text', input({ finalizers: 'abc' }), 'metadata.finalizers'],
    ['a label __proto__', input({ labels: JSON.parse('{"__proto__":"x"}') as object }), 'metadata.labels.__proto__'],
    ['an annotation with a number', input({ annotations: { a: 1 } }), 'metadata.annotations.a'],
    ['a uid that is no text', input({ uid: 5 }), 'metadata.uid'],
    ['a version that is no text', input({ version: 5 }), 'metadata.version'],
  ])('refuses %s', (_name, value, path) => {
    expect(issuesOf(() => makeResource(value as ResourceInput))).toEqual([path]);
  });

  test('an error about a resource names it, unless its name is what is wrong', () => {
    expect(() => makeResource(input({}, { a: undefined }))).toThrow(/Things\.example\.dev\/default\/a is invalid: spec\.a: /);
    expect(() => makeResource(input({ id: 'a\nb' }))).toThrow(/^metadata\.id: must not hold control characters/);
  });

  test('asks accessors once', () => {
    let asked = 0;
    const made = makeResource({
      metadata: pointer,
      get spec() {
        return { asked: ++asked };
      },
    });
    expect([made.spec, asked]).toEqual([{ asked: 1 }, 1]);
  });

  test('a label that reads like a number says what to do', () => {
    expect(() => makeResource(input({ labels: { port: 80 } }))).toThrow('write it in quotes');
  });
});

describe('drafts', () => {
  const original = makeResource(
    input({ labels: { app: 'web' }, finalizers: ['f'], annotations: { note: 'x' } }, { size: 1, list: [{ a: 1 }] }),
  );

  test('a draft without a change is the original', () => {
    const draft = openDraft(original);
    expect(draft.spec).toEqual({ size: 1, list: [{ a: 1 }] });
    draft.labels.set('app', 'web');
    draft.labels.set('x', 'y');
    draft.labels.delete('x');
    draft.finalizers.add('f');
    draft.finalizers.set(['f']);
    draft.annotations.replace({ note: 'x' });
    draft.spec = { list: [{ a: 1 }], size: 1 };
    draft.phase = 'running';
    expect(finishDraft(draft)).toBe(original);
  });

  test('edits make a new frozen resource and leave the original', () => {
    const draft = openDraft(original as typeof original & { spec: { size: number; list: { a: number }[] } });
    (draft.spec as { list: { a: number }[] }).list.push({ a: 2 });
    draft.labels.set('tier', 'front');
    expect(draft.labels.delete('app')).toBe(true);
    expect([draft.labels.has('app'), draft.labels.get('tier'), [...draft.labels.entries()]]).toEqual([false, 'front', [['tier', 'front']]]);
    expect([draft.finalizers.add('g'), draft.finalizers.remove('f'), draft.finalizers.remove('f'), draft.finalizers.size]).toEqual([
      true,
      true,
      false,
      1,
    ]);
    draft.annotations.replace({ other: 'y' });
    draft.phase = 'tearingDown';
    const edited = finishDraft(draft);
    expect(edited.spec).toEqual({ size: 1, list: [{ a: 1 }, { a: 2 }] });
    expect(edited.metadata).toMatchObject({
      labels: { tier: 'front' },
      finalizers: ['g'],
      annotations: { other: 'y' },
      phase: 'tearingDown',
    });
    expect(Object.isFrozen((edited.spec as { list: unknown[] }).list)).toBe(true);
    expect(original.spec).toEqual({ size: 1, list: [{ a: 1 }] });
    expect(original.metadata.labels).toEqual({ app: 'web' });
  });

  test('has no other parts that could be assigned', () => {
    for (const part of ['finalizers', 'labels', 'annotations', 'metadata', 'version', 'owner'])
      expect(() => Object.assign(openDraft(original), { [part]: {} })).toThrow(TypeError);
  });

  test('keeps parts that did not change', () => {
    const draft = openDraft(original);
    draft.phase = 'tearingDown';
    expect(finishDraft(draft).spec).toBe(original.spec);
    const other = openDraft(original);
    other.spec = { size: 2 };
    expect(finishDraft(other).metadata).toBe(original.metadata);
  });

  test.each([
    ['a date where an empty map was', { a: {} }, { a: new Date(0) }],
    ['a map where an empty map was', {}, new Map()],
    ['undefined', { a: 1 }, undefined],
    ['a key that is undefined', { a: 1 }, { a: 1, b: undefined }],
  ])('refuses %s as a spec', (_name, before, after) => {
    const draft = openDraft(makeResource(input({}, before)));
    draft.spec = after;
    expect(issuesOf(() => finishDraft(draft))).toHaveLength(1);
  });

  test('refuses wrong labels, finalizers and phases', () => {
    const draft = openDraft(original);
    draft.labels.set('__proto__', 'x');
    draft.annotations.set('a', 5 as unknown as string);
    draft.finalizers.add('');
    expect(issuesOf(() => finishDraft(draft))).toEqual([
      'metadata.finalizers[1]',
      'metadata.labels["__proto__"]',
      'metadata.annotations.a',
    ]);
    expect(() => {
      openDraft(original).phase = 'gone' as 'running';
    }).toThrow('expected running or tearingDown');
  });
});

describe('sameResource and tombstones', () => {
  test('the order of finalizers, created and updated do not count', () => {
    const one = makeResource(input({ finalizers: ['a', 'b'], created: '2026-01-01T00:00:00Z' }));
    expect(sameResource(one, makeResource(input({ finalizers: ['b', 'a'], updated: '2026-01-02T00:00:00Z' })))).toBe(true);
    for (const other of [
      { finalizers: ['a'] },
      { owner: 'A' },
      { labels: { a: 'b' } },
      { version: '7' },
      { phase: 'tearingDown' },
      { id: 'b' },
    ]) {
      expect(sameResource(one, makeResource(input({ finalizers: ['a', 'b'], ...other })))).toBe(false);
    }
    expect(sameResource(one, makeResource(input({ finalizers: ['a', 'b'] }, { size: 2 })))).toBe(false);
  });

  test('a tombstone has no spec', () => {
    expect(isTombstone(tombstone(pointer))).toBe(true);
    expect(isTombstone(makeResource(input({}, null)))).toBe(false);
  });
});
