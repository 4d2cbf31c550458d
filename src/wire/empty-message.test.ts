import { expect, test } from 'vitest';
import { saysEmptyMessage } from './empty-message.ts';

test.each([
  '',
  '{}\n',
  'null',
  'description: ""\n',
  'n: 0\nratio: 0.0\non: false\nlist: []\nnested:\n  a: null\n  b: {}\nafter: 0s\nsince: 0001-01-01T00:00:00Z\n',
])('%j says nothing', (yaml) => expect(saysEmptyMessage(yaml)).toBe(true));

test.each([
  'n: 1',
  'n: -1',
  'on: true',
  'text: a',
  'list: [0]',
  'list: [""]',
  'a: {b: {c: x}}',
  '!!binary YQ==',
  '!!binary ""',
  'a: [',
  '"0"',
])('%j says something', (yaml) => expect(saysEmptyMessage(yaml)).toBe(false));
