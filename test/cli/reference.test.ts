import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

test('docs/cli.md is what the commands say of themselves (node scripts/cli-reference.mjs)', async () => {
  const url = new URL('../../scripts/cli-reference-text.mjs', import.meta.url).href;
  const { cliReference } = (await import(url)) as { cliReference: () => Promise<string> };
  expect(await readFile(new URL('../../docs/cli.md', import.meta.url), 'utf8')).toBe(await cliReference());
});
