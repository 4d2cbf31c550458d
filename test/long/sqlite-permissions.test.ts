import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Resource } from '../../src/resource/index.ts';
import { kind, Ledger, StoreProgram, thing } from './store-program.ts';

let folder: string;
let file: string;
const ledger = new Ledger();

/** Permissions mean nothing to root, unless it gives that up. */
const under =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search', '--inh-caps', '-dac_override,-dac_read_search']
    : [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-permissions-'));
  file = join(folder, 'state.db');
  const { program } = await start();
  await using _program = program;
  ledger.note('a', (await program.call('create', thing('a', 1))).value as Resource);
  expect(await program.end()).toEqual({});
});

afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true, force: true });
});

const start = (path = file) => StoreProgram.start({ file: path, under });

async function check(program: StoreProgram): Promise<void> {
  const { value } = await program.call('list', kind);
  expect(ledger.differences((value as { readonly items: readonly Resource[] }).items)).toEqual([]);
}

describe.runIf(process.platform === 'linux')('permissions', () => {
  test('a file that may not be written, or not be read, is refused with its name, and opens once it may', async () => {
    for (const mode of [0o444, 0o000]) {
      chmodSync(file, mode);
      const { program, opened } = await start();
      await using _program = program;
      expect(opened).toMatchObject({ code: 'Unavailable', message: expect.stringMatching(/state\.db.*permissions/) });
    }
    chmodSync(file, 0o600);
    const { program } = await start();
    await using _program = program;
    await check(program);
  });

  test('a folder that may not be written is refused, and opens once it may', async () => {
    chmodSync(folder, 0o500);
    const { program, opened } = await start();
    await using _program = program;
    expect(opened).toMatchObject({ code: 'Unavailable', message: expect.stringContaining(file) });
    chmodSync(folder, 0o700);
    const { program: again } = await start();
    await using _again = again;
    await check(again);
  });

  test.each([
    ['the folder', (): void => chmodSync(folder, 0o500)],
    ['the file', (): void => chmodSync(file, 0o400)],
  ])('taken away from %s of an open store: it goes on, and nothing is lost over its end', async (_name, take) => {
    const { program } = await start();
    await using _program = program;
    ledger.note('b', (await program.call('create', thing('b', 1))).value as Resource);
    take();
    const { code, value } = await program.call('create', thing('c', 1));
    expect(code).toBeUndefined();
    ledger.note('c', value as Resource);
    await check(program);
    expect(await program.end()).toEqual({});
    chmodSync(folder, 0o700);
    chmodSync(file, 0o600);
    const { program: again } = await start();
    await using _again = again;
    await check(again);
    for (const id of ['b', 'c']) ledger.note(id, undefined);
  });

  test('a folder in the place of the file, or none at all, is refused with its name', async () => {
    mkdirSync(join(folder, 'is-a-folder'));
    for (const path of [join(folder, 'is-a-folder'), join(folder, 'no', 'such', 'state.db')]) {
      const { program, opened } = await start(path);
      await using _program = program;
      expect(opened).toMatchObject({ code: 'Unavailable', message: expect.stringContaining(path) });
    }
  });
});
