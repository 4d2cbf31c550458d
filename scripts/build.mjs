// Builds dist/ from src/: `tsc`, then what tsc does not do.
//  - files in dist whose source is gone are removed (tsc leaves them);
//  - the program in package.json's `bin` becomes executable.
// The state of the incremental build lies inside dist/, so that `rm -r dist` asks for a whole build.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');

removeOrphans();
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
  cwd: root,
  stdio: 'inherit',
});
makeProgramsExecutable();
process.exitCode = status ?? 1;

function removeOrphans() {
  if (!existsSync(dist)) return;
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const match = /^(.*?)(\.d\.ts|\.js)(\.map)?$/.exec(relative(dist, path));
    if (!match) continue;
    if (!existsSync(join(root, 'src', `${match[1]}.ts`))) rmSync(path);
  }
}

function makeProgramsExecutable() {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const program of Object.values(bin)) {
    const path = join(root, program);
    if (!existsSync(path)) continue;
    const { mode } = statSync(path);
    if ((mode & 0o111) !== 0o111) chmodSync(path, mode | 0o755);
  }
}
