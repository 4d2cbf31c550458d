import { execFile } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { baseDirectoryAnnotation } from '../../src/host/index.ts';
import { program, Workplace } from './harness.ts';
import { runInProcess } from './in-process.ts';

test('a relative directory is relative to the folder of its file; of standard input and pipes, to that of the caller', async () => {
  await using place = await Workplace.make();
  await place.start(['serve', '--store', 'memory:']).shows('serving');
  const here = realpathSync(place.folder);
  const stack = (id: string): string => `metadata: { type: stack, id: ${id} }\nspec: { directory: ./data, services: {} }\n`;
  mkdirSync(place.path('deep'));
  writeFileSync(place.path('deep/file.yaml'), stack('file'));
  symlinkSync('deep/file.yaml', place.path('link.yaml'));
  mkdirSync(place.path('folder'));
  writeFileSync(place.path('folder/a.yaml'), stack('folder'));
  writeFileSync(place.path('pipe.txt'), stack('pipe'));
  const run = (args: readonly string[], input?: string) => runInProcess(place.folder, args, input === undefined ? {} : { input });
  const folderOf = async (id: string): Promise<string> => {
    const { stdout } = await run(['get', 'stack', id, '-o', 'json']);
    return (JSON.parse(stdout) as { metadata: { annotations: Record<string, string> } }).metadata.annotations[
      baseDirectoryAnnotation
    ] as string;
  };
  await run(['apply', '-f', 'deep/file.yaml']);
  expect(await folderOf('file')).toBe(`${here}/deep`);
  // The same file by another name is the same stack in the same place.
  expect((await run(['apply', '-f', 'link.yaml'])).stdout).toBe('stacks/file unchanged\n');
  await run(['apply', '-f', 'folder']);
  expect(await folderOf('folder')).toBe(`${here}/folder`);
  await run(['apply', '-f', '-'], stack('stdin'));
  expect(realpathSync(await folderOf('stdin'))).toBe(here);
  await promisify(execFile)('bash', ['-c', `${process.execPath} ${program} apply -f <(cat pipe.txt)`], {
    cwd: here,
    env: { ...process.env, INIT_CWD: here },
  });
  expect(realpathSync(await folderOf('pipe'))).toBe(here);
});
