// `npm start -- [files]`: builds, then runs `steadystate up [files]`.
// The files are resolved by the program against INIT_CWD, the folder in which the person typed the command.
// Signals of the terminal reach the program by themselves (same process group); those sent to this process
// alone are passed on, so that stopping it never leaves the program behind.
import { spawn, spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const build = spawnSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: 'inherit' });
if (build.status !== 0) process.exit(build.status ?? 1);

const program = spawn(process.execPath, [join(root, 'dist', 'cli', 'main.js'), 'up', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, INIT_CWD: process.env.INIT_CWD ?? process.cwd() },
});
// Ctrl-C goes to the whole group: the program has it already, this process only waits for the program's end.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => program.kill(signal));
program.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
program.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1);
});
