// npm run torture [-- --kills N]: kills programs that write to a SQLite store, and checks each time what is left. It tells how far
// it is every so many kills, and its last line what came of it, so that it can run in the background, at the lowest priority:
//   nice -n 19 npm run torture > torture.log 2>&1 &
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { kills: { type: 'string', default: '10000' } } });
if (!(Number(values.kills) > 0)) throw new Error(`--kills takes a number, found ${values.kills}`);
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const start = performance.now();
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', 'test/long/sqlite-kill.test.ts', '--reporter=dot', '--disableConsoleIntercept'],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      STEADYSTATE_LONG: '1',
      STEADYSTATE_KILLS: values.kills,
      STEADYSTATE_KILLS_TOLD: String(Math.max(1, Math.floor(Number(values.kills) / 100))),
    },
  },
);
process.exitCode = status ?? 1;
const minutes = ((performance.now() - start) / 60_000).toFixed(1);
console.log(`torture: ${values.kills} kills ${status === 0 ? 'passed' : 'FAILED, see above'} in ${minutes} min`);
