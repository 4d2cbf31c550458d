import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { openSqliteState } from './index.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gate-'));
  file = join(folder, 'state.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

const built = (path: string): string => JSON.stringify(new URL(`../../../dist/${path}`, import.meta.url).href);
const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Things.test' };

async function run(program: string): Promise<{ readonly code: number | null; readonly output: string; readonly errors: string }> {
  const text = `
    import { nodeEnvironment } from ${built('index.js')};
    import { openSqliteState } from ${built('backends/sqlite/index.js')};
    const state = await openSqliteState({ file: ${JSON.stringify(file)}, environment: nodeEnvironment() });
    ${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text]);
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  const code = await new Promise<number | null>((resolve) => child.once('close', (ended) => resolve(ended)));
  return { code, output, errors };
}

/** Writes that keep the thread at work; `end` is what happens as soon as one of them was acknowledged. */
const writing = (end: string): string => `
  let count = 0;
  const written = () => { process.stdout.write(count++ + '\\n'); if (count === 3) { ${end} } };
  for (let index = 0; index < 20; index++)
    state.create({ metadata: { ...${JSON.stringify(kind)}, id: 'x' + Math.random() }, spec: 'y'.repeat(200_000) }).then(written);
  await new Promise(() => {});`;

describe('a program that ends while its store writes', () => {
  test.each([
    ['at once', 'process.exit(7);', 7, /^$/],
    ['by an error', "process.nextTick(() => { throw new Error('of its own'); });", 1, /^(?!.*(?:terminate|FATAL)).*of its own/s],
  ])('ends %s with its own code and words, and what was acknowledged is there', async (_name, end, code, errors) => {
    let acknowledged = 0;
    for (let round = 0; round < 3; round++) {
      const ended = await run(writing(end));
      expect(ended).toMatchObject({ code, errors: expect.stringMatching(errors) });
      acknowledged += ended.output.trim().split('\n').length;
    }
    await using state = await openSqliteState({ file, environment });
    expect((await state.list(kind)).items.length).toBeGreaterThanOrEqual(acknowledged);
  });
});

test.runIf(process.platform === 'linux')('a store stays held when its program has copied the file and so lost the lock', async () => {
  await using state = await openSqliteState({ file, environment });
  await state.create({ metadata: { ...kind, id: 'a' }, spec: 1 } as never);
  copyFileSync(file, join(folder, 'copy.db'));
  const other = await run('');
  expect(other.errors).toContain(`in use by process ${process.pid}`);
  await expect(openSqliteState({ file, environment })).rejects.toMatchObject({ code: 'Locked' });
  await state.create({ metadata: { ...kind, id: 'b' }, spec: 1 } as never);
  expect((await state.list(kind)).items).toHaveLength(2);
});

test.each([
  ['of a bundle, beside which the file of the thread is missing', [], true, /leaves steadystate out of its bundle/],
  ['that may start no thread', ['--allow-fs-read=*', '--allow-fs-write=*'], false, /--allow-worker/],
])('a program %s is told so', async (_name, flags, bundled, expected) => {
  const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));
  const permission = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
  let from = dist;
  if (bundled) {
    // Every file but that one, at another place.
    from = join(folder, 'dist');
    cpSync(dist, from, { recursive: true, filter: (path) => !path.endsWith('writer-worker.js') });
    symlinkSync(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  }
  const program = `
    import { nodeEnvironment } from ${JSON.stringify(pathToFileURL(join(from, 'index.js')).href)};
    import { openSqliteState } from ${JSON.stringify(pathToFileURL(join(from, 'backends/sqlite/index.js')).href)};
    await openSqliteState({ file: ${JSON.stringify(file)}, environment: nodeEnvironment() }).catch((error) => console.log(error.code, error.message));`;
  const args = [...(flags.length > 0 ? [permission, ...flags] : []), '--input-type=module', '-e', program];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  expect(output).toMatch(expected);
  expect(output).toMatch(/^Unavailable /);
});
