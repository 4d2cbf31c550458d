import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';

vi.setConfig({ testTimeout: 60_000 });

const program = join(import.meta.dirname, '../../examples/operator/website.mjs');

/** Runs the example until it says where the site is. */
async function startExample(folder: string, store: string) {
  const child = spawn(process.execPath, [program, store, 'site'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
      const found = /^ready: (\S+)/m.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error(`the example ended:\n${output}`)));
  });
  return {
    url,
    output: () => output,
    async stop() {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}

test.each(['memory:', 'sqlite:./website.db'])("a user's own operator runs with one command on %s", async (store) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'operator-')));
  try {
    const example = await startExample(folder, store);
    expect(await (await fetch(example.url)).text()).toContain('This site is kept as declared.');
    const page = join(folder, 'site/index.html');
    const declared = readFileSync(page, 'utf8');
    writeFileSync(page, 'changed');
    while (readFileSync(page, 'utf8') !== declared) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await example.stop()).toBe(0);
    await expect(fetch(example.url)).rejects.toThrow();
    if (store !== 'memory:') {
      // The same site, on the same port, from what is in the store.
      const again = await startExample(folder, store);
      expect(again.url).toBe(example.url);
      expect(again.output()).not.toContain('Created');
      expect(await again.stop()).toBe(0);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the example is short', () => {
  expect(readFileSync(program, 'utf8').split('\n').length).toBeLessThan(100);
});
