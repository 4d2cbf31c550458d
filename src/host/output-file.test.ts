import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FilePort } from '../environment/index.ts';
import { nodeEnvironment } from '../environment/index.ts';
import { lastLine, OutputSearch, removeOutputs, rotateOutput } from './output-file.ts';

const { files } = nodeEnvironment();
let folder = '';
let path = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'output-'));
  path = join(folder, 'a.log');
});
afterEach(() => rm(folder, { recursive: true }));

test('an output that has grown too long is copied away and cut; the oldest copy goes', async () => {
  const options = { maxBytes: 4, keep: 2 };
  expect(await rotateOutput(files, path, options)).toBe(false);
  await writeFile(path, '1234');
  expect(await rotateOutput(files, path, options)).toBe(false);
  for (const text of ['first', 'second', 'third']) {
    await writeFile(path, text, { flag: 'a' });
    expect(await rotateOutput(files, path, options)).toBe(true);
  }
  expect((await stat(path)).size).toBe(0);
  expect(await readFile(`${path}.1`, 'utf8')).toBe('third');
  expect(await readFile(`${path}.2`, 'utf8')).toBe('second');
  expect(await files.list(folder)).toEqual(['a.log', 'a.log.1', 'a.log.2']);
  await removeOutputs(files, path, 2);
  expect(await files.list(folder)).toEqual([]);
});

test('an output that cannot be copied stays as it is, and so do the earlier ones', async () => {
  const options = { maxBytes: 4, keep: 2 };
  for (const text of ['first', 'second', 'third']) {
    await writeFile(path, text, { flag: 'a' });
    if (text !== 'third') await rotateOutput(files, path, options);
  }
  const full: FilePort = {
    ...files,
    async copy(_from, to) {
      await writeFile(to, 'thi');
      throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    },
  };
  for (let attempt = 0; attempt < 3; attempt++) await expect(rotateOutput(full, path, options)).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(await Promise.all([path, `${path}.1`, `${path}.2`].map((each) => readFile(each, 'utf8')))).toEqual(['third', 'second', 'first']);
  expect(await files.list(folder)).toEqual(['a.log', 'a.log.1', 'a.log.2']);
});

test('the last line is that of this run, not empty, and not endless', async () => {
  expect(await lastLine(files, path, 0)).toBeUndefined();
  await writeFile(path, 'of the run before\n');
  expect(await lastLine(files, path, 18)).toBeUndefined();
  await appendFile(path, 'one\r\ntwo  \n\n   \n');
  expect(await lastLine(files, path, 18)).toBe('two');
  // Cut meanwhile: what is there now is newer than the start.
  await truncate(path, 0);
  await appendFile(path, 'new');
  expect(await lastLine(files, path, 18)).toBe('new');
  await appendFile(path, `\n${'😀'.repeat(400)}`);
  const line = (await lastLine(files, path, 0)) as string;
  expect(line).toMatch(/^(😀)+…$/u);
  expect(line.length).toBeLessThanOrEqual(502);
});

test('a line is found once, whether it comes in pieces, before its end, or after a cut', async () => {
  const search = new OutputSearch(files, path, 0, (line) => line.includes('listening on'));
  expect(await search.found()).toBe(false);
  await writeFile(path, 'starting\nlisten');
  expect(await search.found()).toBe(false);
  await appendFile(path, 'ing on 80');
  expect(await search.found()).toBe(true);
  const later = new OutputSearch(files, path, (await stat(path)).size, (line) => line.includes('listening on'));
  expect(await later.found()).toBe(false);
  await truncate(path, 0);
  await appendFile(path, 'listening on\n');
  expect(await later.found()).toBe(true);
});

test('a character that is cut in two by a read is put together', async () => {
  const search = new OutputSearch(files, path, 0, (line) => line === 'größe');
  const bytes = Buffer.from('größe');
  await writeFile(path, bytes.subarray(0, 3));
  expect(await search.found()).toBe(false);
  await appendFile(path, bytes.subarray(3));
  expect(await search.found()).toBe(true);
});
