import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
// One per run, since two may go on at once; inside the package, so that `steadystate` means this one.
const folder = join(root, '.cache', `docs-${process.pid}`);

interface Example {
  readonly name: string;
  readonly code: string;
  /** What the next block of kind `text` says that it prints. */
  readonly prints: string | undefined;
}

/** The examples of a page: blocks of TypeScript behind a line `<!-- runnable -->`. */
function examplesOf(page: string, text: string): readonly Example[] {
  return [...text.matchAll(/<!-- runnable -->\n```ts\n([\s\S]*?)```\n(?:\n?```text\n([\s\S]*?)```)?/g)].map((match, index) => ({
    name: `${page.replace(/\W+/g, '-')}-${index + 1}`,
    code: match[1] as string,
    prints: match[2],
  }));
}

const pages = [
  'README.md',
  ...(await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
].sort();
const examples = (await Promise.all(pages.map(async (page) => examplesOf(page, await readFile(join(root, page), 'utf8'))))).flat();

describe('documents', () => {
  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    for (const { name, code } of examples) await writeFile(join(folder, `${name}.mts`), code);
    const compilerOptions = {
      target: 'es2023',
      lib: ['es2023', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      skipLibCheck: true,
      types: ['node'],
      outDir: 'out',
      rootDir: '.',
    };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }));
    const { stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder]).catch(
      (error: { readonly stdout: string }) => error,
    );
    expect(stdout).toBe('');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('there are examples', () => {
    expect(examples.length).toBeGreaterThan(0);
  });

  test.each(examples.map((example) => [example.name, example] as const))('%s runs', async (name, { prints }) => {
    const { stdout } = await run(process.execPath, [join(folder, 'out', `${name}.mjs`)], { cwd: root, timeout: 20_000 });
    if (prints !== undefined) expect(stdout).toBe(prints);
  });

  test('every link between documents leads somewhere', async () => {
    const broken: string[] = [];
    for (const page of pages) {
      const text = await readFile(join(root, page), 'utf8');
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)) {
        const path = join(root, page, '..', target);
        await readFile(path).catch((error: NodeJS.ErrnoException) => error.code !== 'EISDIR' && broken.push(`${page}: ${target}`));
      }
    }
    expect(broken).toEqual([]);
  });
});
