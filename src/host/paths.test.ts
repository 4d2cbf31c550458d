import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { nodeEnvironment } from '../environment/index.ts';
import { isWithin, outsideProblem } from './paths.ts';

test('a path is within a folder by whole steps', () => {
  expect(isWithin('/a/b', '/a')).toBe(true);
  expect(isWithin('/a', '/a')).toBe(true);
  expect(isWithin('/ab', '/a')).toBe(false);
  expect(isWithin('/ab', '/')).toBe(true);
});

test('links are followed before a path counts as inside', async () => {
  const { files } = nodeEnvironment();
  const top = await realpath(await mkdtemp(join(tmpdir(), 'paths-')));
  try {
    const folder = join(top, 'data');
    // Nothing there yet: nothing can lead out.
    expect(await outsideProblem(files, join(folder, 'a/b'), folder)).toBeUndefined();
    await mkdir(join(folder, 'real'), { recursive: true });
    await mkdir(join(top, 'elsewhere'));
    await symlink(join(folder, 'real'), join(folder, 'inside'));
    await symlink(join(top, 'elsewhere'), join(folder, 'outside'));
    await symlink(join(top, 'nowhere'), join(folder, 'dangling'));
    expect(await outsideProblem(files, join(folder, 'inside/x/y'), folder)).toBeUndefined();
    expect(await outsideProblem(files, join(folder, 'outside/x'), folder)).toContain(
      `a link in its path leads to ${join(top, 'elsewhere')}`,
    );
    expect(await outsideProblem(files, join(folder, 'outside/x/y/z'), folder)).toContain('a link in its path');
    expect(await outsideProblem(files, join(folder, 'dangling/x'), folder)).toContain('leads nowhere');
    expect(await outsideProblem(files, join(folder, '../x'), folder)).toContain('is outside');
    // The folder itself may be a link: what counts is where it leads.
    await symlink(folder, join(top, 'alias'));
    expect(await outsideProblem(files, join(top, 'alias/real/x'), join(top, 'alias'))).toBeUndefined();
  } finally {
    await rm(top, { recursive: true });
  }
});
