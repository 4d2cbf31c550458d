import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };
const rounds = 200;

/** Four writers that create, update and destroy ids of their own, and tell each acknowledgement on a line. */
const program = (file: string, round: number): string => `
  import { writeSync } from 'node:fs';
  import { nodeEnvironment } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
  import { openSqliteState } from ${JSON.stringify(new URL('../../dist/backends/sqlite/index.js', import.meta.url).href)};
  const kind = ${JSON.stringify(kind)};
  const state = await openSqliteState({ file: ${JSON.stringify(file)}, environment: nodeEnvironment(), historyLimit: 500 });
  // Said before anything else happens: process.stdout would queue what a slow reader has no room for.
  const tell = (id, what) => writeSync(1, id + ' ' + what + ' .\\n');
  await Promise.all([0, 1, 2, 3].map(async (writer) => {
    for (let n = 0; ; n++) {
      const id = 'r${round}-w' + writer + '-' + n;
      const created = await state.create({ metadata: { ...kind, id }, spec: { n } });
      tell(id, created.metadata.version);
      if (n % 2 === 1) tell(id, (await state.update({ ...created, spec: { n, again: true } })).metadata.version);
      if (n % 4 === 3) {
        tell(id, 'going');
        await state.destroy({ ...kind, id });
        tell(id, 'gone');
      }
    }
  }));
`;

test(`nothing acknowledged is lost, and no version is used twice, in ${rounds} kills`, async () => {
  const environment = nodeEnvironment();
  const folder = mkdtempSync(join(tmpdir(), 'steadystate-kill-'));
  const file = join(folder, 'state.db');
  /** What was acknowledged last for each id. */
  const told = new Map<string, string>();
  const versions = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program(file, round)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    let lines = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      const [id = '', what = '', end] = line.split(' ');
      // The last line may have been cut off by the kill.
      if (end !== '.') continue;
      told.set(id, what);
      if (/^[0-9]/.test(what)) {
        expect(versions.has(what)).toBe(false);
        versions.add(what);
      }
      if (++lines === 20 + ((round * 37) % 150)) child.kill('SIGKILL');
    }
    await exited;
    expect(lines).toBeGreaterThan(19);
    if (round % 10 !== 9 && round !== rounds - 1) continue;
    await using state = await openSqliteState({ file, environment });
    const found = new Map((await state.list(kind)).items.map(({ metadata }) => [metadata.id, metadata.version]));
    for (const [id, what] of told) {
      if (what === 'gone') expect(found.has(id)).toBe(false);
      // One more write may have become durable without a word; an earlier one must not be back.
      else if (what !== 'going' && !(Number(found.get(id)) >= Number(what)))
        throw new Error(`round ${round}: ${id} was acknowledged at ${what}, found ${found.get(id)}; the store is at ${state.revision}`);
    }
    for (const version of found.values()) versions.add(version);
  }
  rmSync(folder, { recursive: true });
  expect(environment.open.counts()).toEqual({});
}, 1_200_000);
