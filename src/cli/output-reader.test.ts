import { appendFile, copyFile, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeEnvironment } from '../environment/index.ts';
import { OutputReader } from './output-reader.ts';

let folder: string;
let file: string;
let lines: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'output-reader-'));
  file = join(folder, 'a.log');
  lines = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function reader(keep = 3): OutputReader {
  const earlier = Array.from({ length: keep }, (_, index) => `${file}.${index + 1}`);
  const { files } = nodeEnvironment();
  return new OutputReader({ files, output: { file, earlier }, signal: new AbortController().signal, print: (line) => lines.push(line) });
}

async function rotate(): Promise<void> {
  for (const number of [2, 1]) await rename(`${file}.${number}`, `${file}.${number + 1}`).catch(() => {});
  await copyFile(file, `${file}.1`);
  await truncate(file);
}

test('the last lines are looked for in earlier outputs too, also where a line lies over the cut', async () => {
  await writeFile(`${file}.2`, 'a\nb\n');
  await writeFile(`${file}.1`, 'c\nd\ne-');
  await writeFile(file, 'e\nf\n');
  for (const [tail, expected] of [
    [0, []],
    [1, ['f']],
    [2, ['e-e', 'f']],
    [3, ['d', 'e-e', 'f']],
    [4, ['c', 'd', 'e-e', 'f']],
    [5, ['b', 'c', 'd', 'e-e', 'f']],
    [9, ['a', 'b', 'c', 'd', 'e-e', 'f']],
  ] as const) {
    lines = [];
    await reader().begin(tail);
    expect(lines).toEqual(expected);
  }
});

test('right after a rotation the last lines are those of the earlier output', async () => {
  await writeFile(file, 'a\nb\nc\n');
  await rotate();
  await reader().begin(2);
  expect(lines).toEqual(['b', 'c']);
});

test('what was written before a rotation and not read yet is read, once', async () => {
  await writeFile(file, 'a\nb\n');
  const read = reader();
  await read.begin(undefined);
  await appendFile(file, 'c\nd');
  await rotate();
  await appendFile(file, 'd\ne\n');
  await read.more();
  await appendFile(file, 'f\n');
  await read.more();
  expect(lines).toEqual(['a', 'b', 'c', 'dd', 'e', 'f']);
});

test('two rotations between two looks, and an output that has outgrown the one before', async () => {
  await writeFile(file, 'a\n');
  const read = reader();
  await read.begin(undefined);
  await appendFile(file, 'b\n');
  await rotate();
  await appendFile(file, 'c\n');
  await rotate();
  await appendFile(file, 'd, which is much longer than all before\n');
  await read.more();
  await read.more();
  expect(lines).toEqual(['a', 'b', 'c', 'd, which is much longer than all before']);
});

test('a look between the copy and the cut, and one earlier output that is written over', async () => {
  await writeFile(file, 'a\nb\n');
  const read = reader(1);
  await read.begin(undefined);
  await copyFile(file, `${file}.1`);
  await read.more();
  await appendFile(file, 'late\n');
  await read.more();
  await truncate(file);
  await appendFile(file, 'c\n');
  await read.more();
  await appendFile(file, 'd\n');
  await copyFile(file, `${file}.1`);
  await truncate(file);
  await read.more();
  await appendFile(file, 'e\n');
  await read.more();
  expect(lines).toEqual(['a', 'b', 'late', 'c', 'd', 'e']);
});

test('an output that somebody cut by hand begins anew', async () => {
  await writeFile(`${file}.1`, 'old, and longer than what follows it\n');
  await writeFile(file, 'a\nb\n');
  const read = reader();
  await read.begin(undefined);
  await truncate(file);
  await read.more();
  await appendFile(file, 'c\n');
  await read.more();
  expect(lines).toEqual(['a', 'b', 'c']);
});
