import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { defaultLimits } from '../../src/server/grpc/limits.ts';
import { descriptorFiles } from '../../src/wire/index.ts';

const page = await readFile(new URL('../../docs/wire.md', import.meta.url), 'utf8');

test('the program in Go is the one that test/interop runs', async () => {
  const program = await readFile(new URL('../interop/go/example/main.go', import.meta.url), 'utf8');
  expect(/```go\n([\s\S]*?)```/.exec(page)?.[1]).toBe(program);
});

test('every limit and every service is named', () => {
  for (const name of Object.keys(defaultLimits)) expect(page).toContain(`\`${name}\``);
  for (const { services } of descriptorFiles)
    for (const name of services) expect(page).toContain(name.replace(/\.(v1alpha\.)?ServerReflection$/, ''));
});
