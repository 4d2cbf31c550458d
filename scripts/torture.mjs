// npm run torture [-- --kills N]: kills programs that write to a SQLite store, and checks each time what is left.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { kills: { type: 'string', default: '10000' } } });
if (!(Number(values.kills) > 0)) throw new Error(`--kills takes a number, found ${values.kills}`);
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', 'test/long/sqlite-kill.test.ts'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, STEADYSTATE_LONG: '1', STEADYSTATE_KILLS: values.kills },
});
process.exitCode = status ?? 1;
