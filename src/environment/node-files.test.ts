import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { nodeFiles } from './node-files.ts';
import { OpenThings } from './open-things.ts';

const open = new OpenThings();
const files = nodeFiles(open);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = async (path: string): Promise<string> => new TextDecoder().decode(await files.read(path));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'files-'));
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(() => {
  expect(open.counts()).toEqual({});
});

describe('writing', () => {
  test('goes through a temporary file beside the path, with exactly the mode', async () => {
    const path = join(folder, 'config.json');
    const before = process.umask(0o077);
    try {
      const temporary = await files.writeTemporary(path, bytes('one'), { mode: 0o664 });
      expect(dirname(temporary)).toBe(folder);
      expect((await files.stat(temporary))?.mode).toBe(0o664);
      expect(await files.stat(path)).toBeUndefined();
      await files.sync(temporary);
      await files.rename(temporary, path);
      await files.sync(folder);
      expect(await text(path)).toBe('one');
      expect(await files.stat(temporary)).toBeUndefined();
    } finally {
      process.umask(before);
    }
  });

  test('takes names as long as the file system does', async () => {
    const path = join(folder, '火'.repeat(80));
    const temporary = await files.writeTemporary(path, bytes('x'), { mode: 0o600 });
    await files.rename(temporary, path);
    expect(await files.remove(path)).toBe(true);
  });

  test('leaves nothing behind when the folder is missing', async () => {
    await expect(files.writeTemporary(join(folder, 'missing', 'a'), bytes('x'), { mode: 0o600 })).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('looking', () => {
  test('tells what is there without following a last link', async () => {
    await writeFile(join(folder, 'file'), 'four');
    await symlink('file', join(folder, 'link'));
    expect(await files.stat(join(folder, 'file'))).toMatchObject({ kind: 'file', size: 4 });
    expect(await files.stat(join(folder, 'link'))).toMatchObject({ kind: 'symlink' });
    expect(await files.stat(folder)).toMatchObject({ kind: 'directory' });
    expect(await files.stat(join(folder, 'nothing'))).toBeUndefined();
    expect(await files.stat(join(folder, 'file', 'below'))).toBeUndefined();
    expect(basename(await files.realPath(join(folder, 'link')))).toBe('file');
  });

  test('knows a file that was replaced under its path', async () => {
    const path = join(folder, 'replaced');
    await writeFile(path, 'a');
    const first = await files.stat(path);
    await files.rename(await files.writeTemporary(path, bytes('a'), { mode: 0o600 }), path);
    expect((await files.stat(path))?.identity).not.toBe(first?.identity);
  });

  test('lists by bytes', async () => {
    const path = join(folder, 'listed');
    await mkdir(path);
    for (const name of ['b', 'a', 'B', 'é', '😀', '\uffee']) await writeFile(join(path, name), '');
    expect(await files.list(path)).toEqual(['B', 'a', 'b', 'é', '\uffee', '😀']);
    expect(await files.list(join(folder, 'nothing'))).toBeUndefined();
  });

  test('reads a range, fewer bytes at the end', async () => {
    const path = join(folder, 'range');
    await writeFile(path, '0123456789');
    expect(new TextDecoder().decode(await files.readRange(path, 2, 3))).toBe('234');
    expect(new TextDecoder().decode(await files.readRange(path, 8, 100))).toBe('89');
    expect(await files.readRange(path, 20, 5)).toHaveLength(0);
  });

  test('calls back when something changes', async () => {
    const path = join(folder, 'watched');
    await mkdir(path);
    let seen = (): void => {};
    const change = new Promise<void>((resolve) => {
      seen = resolve;
    });
    using _watch = await files.watch(path, () => seen());
    expect(open.counts()).toEqual({ fileWatch: 1 });
    await writeFile(join(path, 'new'), '');
    await change;
    await expect(files.watch(join(folder, 'nothing'), () => {})).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('removing', () => {
  test('says whether something was there', async () => {
    const path = join(folder, 'gone');
    await files.makeDirectory(join(path, 'deep'));
    await files.makeDirectory(path);
    await writeFile(join(path, 'file'), '');
    expect(await files.removeDirectory(path)).toBe(false);
    expect(await files.remove(join(path, 'file'))).toBe(true);
    expect(await files.remove(join(path, 'file'))).toBe(false);
    expect(await files.removeDirectory(join(path, 'deep'))).toBe(true);
    expect(await files.removeDirectory(path)).toBe(true);
    expect(await files.removeDirectory(path)).toBe(false);
  });

  test('copies, then truncates, as a log is rotated', async () => {
    const path = join(folder, 'log');
    await writeFile(path, 'lines');
    await files.copy(path, `${path}.1`);
    await files.truncate(path, 0);
    await files.changeMode(path, 0o640);
    expect([await text(path), await text(`${path}.1`)]).toEqual(['', 'lines']);
    expect((await files.stat(path))?.mode).toBe(0o640);
  });
});
