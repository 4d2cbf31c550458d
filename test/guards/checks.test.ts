import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './sources.ts';

/** Runs a script of package.json; its output is the failure's message. */
function npmRun(script: string): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      'npm',
      ['run', '--silent', script],
      { cwd: root, env: { ...process.env, NO_COLOR: '1' }, maxBuffer: 1 << 24 },
      (error, out, err) => {
        if (error === null) resolve();
        else reject(new Error(`npm run ${script}\n${out}${err}`));
      },
    );
  });
}

describe('npm run check', () => {
  test.each(['typecheck', 'lint', 'check:package'])('%s', (script) => npmRun(script), 180_000);

  test('the lock file names no place to download from', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toContain('"resolved"');
  });
});
