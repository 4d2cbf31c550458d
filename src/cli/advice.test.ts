import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { nodeEnvironment } from '../environment/index.ts';
import { errorText } from './advice.ts';

/** As Node makes them. */
const ofSystem = (code: string, what: string) =>
  Object.assign(new Error(`${code}: ${what}, mkdir '/x'`), { code, syscall: 'mkdir', path: '/x' });

test.each([
  ['EACCES', 'permission denied', 'check the permissions of that path and of its folder'],
  ['EROFS', 'read-only file system', 'check the permissions of that path and of its folder'],
  ['ENOSPC', 'no space left on device', 'make room there, or use another place'],
])('a failure of the system is followed by what to do: %s', (code, what, advice) => {
  expect(errorText(ofSystem(code, what))).toBe(`${code}: ${what}, mkdir '/x'\n${advice}\n`);
});

test('a link that leads to itself is told so', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'advice-'));
  try {
    await symlink('loop', join(folder, 'loop'));
    const failed: unknown = await nodeEnvironment()
      .files.realPath(join(folder, 'loop'))
      .catch((error: unknown) => error);
    expect(errorText(failed)).toMatch(/^ELOOP: .*loop'\nmend the link/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
