import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
// One per run; inside the package, so that `steadystate` means this one.
const folder = join(root, '.cache', `types-${process.pid}`);

/** Users' settings that look into every declaration that they import. */
const settings: Readonly<Record<string, object>> = {
  nodenext: { module: 'nodenext', target: 'es2022', lib: ['es2022'] },
  'a bundler': { module: 'esnext', moduleResolution: 'bundler', target: 'es2022', lib: ['es2022', 'dom'] },
  'all that is strict': {
    module: 'node16',
    target: 'es2022',
    lib: ['es2023'],
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
    isolatedModules: true,
    verbatimModuleSyntax: true,
  },
};

describe('the declarations of every subpath are whole', () => {
  beforeAll(async () => {
    await mkdir(folder, { recursive: true });
    const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { readonly exports: object };
    const subpaths = Object.keys(exports).filter((path) => !path.endsWith('.json'));
    const lines = subpaths.map((path, index) => `export * as part${index} from 'steadystate${path.slice(1)}';`);
    await writeFile(join(folder, 'consumer.mts'), `${lines.join('\n')}\n`);
  });
  afterAll(() => rm(folder, { recursive: true }));

  test.each(Object.entries(settings))(
    'under %s',
    async (name, options) => {
      const file = join(folder, `${name.replaceAll(' ', '-')}.json`);
      const compilerOptions = { ...options, strict: true, skipLibCheck: false, noEmit: true, types: ['node'] };
      await writeFile(file, JSON.stringify({ compilerOptions, files: ['consumer.mts'] }));
      try {
        await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', file]);
      } catch (error) {
        throw new Error((error as { readonly stdout: string }).stdout);
      }
    },
    120_000,
  );
});
