import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { stackDefinition } from '../../src/host/index.ts';

const root = join(import.meta.dirname, '../..');

test('the stack of the manual is one', () => {
  const [, block = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(join(root, 'docs/host.md'), 'utf8')) ?? [];
  const { metadata, spec } = parse(block) as { metadata: { type: string }; spec: unknown };
  expect(metadata.type).toBe(stackDefinition.type);
  expect(() => stackDefinition.validate(spec)).not.toThrow();
});

test('the stack of the examples is one, and needs no quotes that a person would forget', () => {
  const documents = parseAllDocuments(readFileSync(join(root, 'examples/host/shop.yaml'), 'utf8'));
  expect(documents).toHaveLength(1);
  const { spec } = (documents[0] as { toJS(): unknown }).toJS() as { spec: { services: object } };
  expect(() => stackDefinition.validate(spec)).not.toThrow();
  expect(Object.keys(spec.services).length).toBeGreaterThanOrEqual(4);
});
