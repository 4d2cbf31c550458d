import { expect, test } from 'vitest';
import { z } from 'zod';
import { nearestName, readable, strict } from './strict-schema.ts';

const known = ['command', 'environment', 'files', 'dependsOn', 'ready', 'restart', 'restartOn', 'stop'];

test.each([
  ['comand', 'command'],
  ['cmomand', 'command'],
  ['Command', 'command'],
  ['depends_on', 'dependsOn'],
  ['env', undefined],
  ['reday', 'ready'],
  ['image', undefined],
  ['x', undefined],
  ['', undefined],
])('%s was probably meant as %s', (name, expected) => {
  expect(nearestName(name, known)).toBe(expected);
});

const schema = readable(
  strict({
    name: z.string(),
    inner: strict({ count: z.number().optional() }).optional(),
    map: z.record(z.string().regex(/^[a-z]+$/, 'lower case only'), z.string()).optional(),
  }),
);

function issues(value: unknown): readonly string[] {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) throw new Error('expected a synchronous schema');
  return (result.issues ?? []).map(({ path = [], message }) => `${path.map(String).join('.')}: ${message}`);
}

test('an unknown field is named itself, wherever it is, with what is known', () => {
  expect(issues({ name: 'x', inner: { coutn: 1, other: 2 }, nmae: 'y' })).toEqual([
    'inner.coutn: unknown field: did you mean count?; known are count',
    'inner.other: unknown field; known are count',
    'nmae: unknown field: did you mean name?; known are name, inner, map',
  ]);
});

test('a wrong type and a wrong key say what was expected', () => {
  expect(issues({ name: 1, map: { A: 'x' } })).toEqual(['name: expected string, found number', 'map.A: lower case only']);
  expect(issues({ name: 'x', map: { a: 'b' } })).toEqual([]);
});
