import { expect, test } from 'vitest';
import { z } from 'zod';
import type { AnyResourceDefinition } from '../../resource/index.ts';
import { defineResource, describeDefinition, makeResource } from '../../resource/index.ts';
import { rowShape } from './rows.ts';

const { metadata } = makeResource({ metadata: { namespace: 'default', type: 'Things.example.dev', id: 'a' }, spec: {} });
const nowMs = Date.parse('2026-01-01T01:00:00Z');

function table(definition: AnyResourceDefinition, spec: unknown, status?: unknown): readonly (readonly string[])[] {
  const shape = rowShape(describeDefinition(definition).spec, { wide: false, labels: false, namespaces: false, nowMs: () => nowMs });
  const created = '2026-01-01T00:00:00Z';
  return [shape.headings, shape.cells({ metadata: { ...metadata, created }, spec, ...(status !== undefined && { status }) })];
}

test('a type that says nothing of its columns shows its phase, and what a companion says', () => {
  const type = { type: 'Things.example.dev', spec: z.any() };
  expect(table(defineResource(type), {})).toEqual([
    ['ID', 'PHASE', 'AGE'],
    ['a', 'running', '60m'],
  ]);
  const withStatus = defineResource({ ...type, status: { type: 'ThingStatuses.example.dev' } });
  const headings = ['ID', 'PHASE', 'READY', 'REASON', 'AGE'];
  const conditions = [{ type: 'Ready', status: 'False', reason: 'Busy' }];
  expect(table(withStatus, {}, { conditions })).toEqual([headings, ['a', 'running', 'False', 'Busy', '60m']]);
  expect(table(withStatus, {})).toEqual([headings, ['a', 'running', '', '', '60m']]);
});

test('when something was last seen is told as an age', () => {
  const events = defineResource({
    type: 'Things.example.dev',
    spec: z.any(),
    printColumns: [{ name: 'Last Seen', jsonPath: '{.spec.at}' }],
  });
  expect(table(events, { at: '2026-01-01T00:58:30Z' })).toEqual([
    ['ID', 'LAST SEEN', 'AGE'],
    ['a', '90s', '60m'],
  ]);
});
