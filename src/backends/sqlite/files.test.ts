import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import type { SqliteState } from './sqlite-state.ts';
import { openSqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const thing = (id: string) => ({ metadata: { ...kind, id }, spec: { size: 1 } });
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-files-'));
  file = join(folder, 'state.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

const open = (path = file): Promise<SqliteState> => openSqliteState({ file: path, environment });
const ids = async (state: SqliteState): Promise<readonly string[]> => (await state.list(kind)).items.map(({ metadata }) => metadata.id);

describe('under an open store', () => {
  const away = (name: string): void => renameSync(join(folder, name), join(folder, `${name}.away`));
  const damage: Readonly<Record<string, () => void>> = {
    'the file removed': () => rmSync(file),
    'the file moved': () => away('state.db'),
    'the file replaced by a copy': () => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
    'the file replaced by another': () => {
      away('state.db');
      writeFileSync(file, 'something else');
    },
    'its log removed': () => rmSync(`${file}-wal`),
    'its log replaced': () => {
      away('state.db-wal');
      writeFileSync(`${file}-wal`, '');
    },
    'its folder moved': () => {
      renameSync(folder, `${folder}-moved`);
      folder = `${folder}-moved`;
    },
    'its notes those of another opener': () => {
      rmSync(`${file}-holder`);
      writeFileSync(`${file}-holder`, 'somebody else');
    },
  };

  test.each(Object.keys(damage))('%s: nothing is acknowledged any more', async (name) => {
    await using state = await open();
    await state.create(thing('a'));
    damage[name]?.();
    const refused = { code: 'Corrupt', message: expect.stringContaining(file) };
    const writes = await Promise.allSettled([state.create(thing('b')), state.create(thing('c')), state.destroy({ ...kind, id: 'a' })]);
    for (const write of writes) expect(write).toMatchObject({ status: 'rejected', reason: refused });
    await expect(state.create(thing('d'))).rejects.toMatchObject(refused);
    await expect(state.get({ ...kind, id: 'a' })).rejects.toMatchObject(refused);
    await expect(state.watchKind(kind)).rejects.toMatchObject(refused);
  });

  test('what was moved away while it was open is put back, and opened again', async () => {
    {
      await using state = await open();
      await state.create(thing('a'));
      away('state.db');
      await expect(state.create(thing('b'))).rejects.toMatchObject({ code: 'Corrupt' });
    }
    renameSync(`${file}.away`, file);
    await using state = await open();
    expect(await ids(state)).toContain('a');
    await state.create(thing('c'));
  });

  test('its notes may go: they are a help only', async () => {
    await using state = await open();
    await state.create(thing('a'));
    rmSync(`${file}-holder`);
    rmSync(`${file}-reserve`);
    await state.create(thing('b'));
    expect(await ids(state)).toEqual(['a', 'b']);
  });
});

describe('another opener', () => {
  test('is refused by whatever name it calls the file', async () => {
    await using state = await open();
    await state.create(thing('a'));
    mkdirSync(join(folder, 'sub'));
    symlinkSync('state.db', join(folder, 'soft.db'));
    symlinkSync(folder, join(folder, 'sub', 'folder'));
    linkSync(file, join(folder, 'hard.db'));
    const names = [file, relative(process.cwd(), file), join(folder, 'soft.db'), join(folder, 'sub', 'folder', 'state.db')];
    for (const name of names)
      await expect(open(name)).rejects.toMatchObject({ code: 'Locked', holder: expect.stringContaining(`process ${process.pid} `) });
    await expect(open(join(folder, 'hard.db'))).rejects.toMatchObject({ code: 'Locked' });
    await state.create(thing('b'));
    expect(await ids(state)).toEqual(['a', 'b']);
  });

  test('by a symbolic link finds what was left without a close under the name itself', async () => {
    const crashed = join(folder, 'crashed');
    mkdirSync(crashed);
    {
      await using state = await open();
      await state.create(thing('a'));
      for (const extra of ['', '-wal', '-holder']) copyFileSync(`${file}${extra}`, join(crashed, `state.db${extra}`));
    }
    symlinkSync(join('crashed', 'state.db'), join(folder, 'soft.db'));
    {
      await using state = await open(join(folder, 'soft.db'));
      expect(await ids(state)).toEqual(['a']);
      rmSync(join(crashed, 'state.db-wal'));
      await expect(state.create(thing('b'))).rejects.toMatchObject({ code: 'Corrupt' });
    }
    expect(existsSync(join(folder, 'soft.db-holder'))).toBe(false);
  });

  test('by a symbolic link leaves a damaged log as it is', async () => {
    const crashed = join(folder, 'crashed');
    mkdirSync(crashed);
    {
      await using state = await open();
      for (const id of ['a', 'b', 'c']) await state.create(thing(id));
      // What is noted once an answer is on its way is noted before the next call.
      await state.admin.check({ quick: true });
      for (const extra of ['', '-wal', '-holder']) copyFileSync(`${file}${extra}`, join(crashed, `state.db${extra}`));
    }
    const log = readFileSync(join(crashed, 'state.db-wal'));
    const last = log.length - 5000;
    log[last] = (log[last] as number) ^ 0xff;
    writeFileSync(join(crashed, 'state.db-wal'), log);
    symlinkSync(join('crashed', 'state.db'), join(folder, 'soft.db'));
    await expect(open(join(folder, 'soft.db'))).rejects.toMatchObject({ code: 'Corrupt' });
    expect(readFileSync(join(crashed, 'state.db-wal')).equals(log)).toBe(true);
  });

  test('by a symbolic link to a file that is not there yet makes that file, with everything beside it', async () => {
    mkdirSync(join(folder, 'real'));
    symlinkSync('real', join(folder, 'folder'));
    symlinkSync(join('folder', 'later.db'), join(folder, 'soft.db'));
    {
      await using state = await open(join(folder, 'soft.db'));
      await state.create(thing('a'));
      expect(readdirSync(folder).filter((name) => name.startsWith('soft'))).toEqual(['soft.db']);
      expect(existsSync(join(folder, 'real', 'later.db-holder'))).toBe(true);
      for (const name of [join(folder, 'real', 'later.db'), join(folder, 'folder', 'later.db')])
        await expect(open(name)).rejects.toMatchObject({ code: 'Locked', holder: expect.stringContaining(`process ${process.pid} `) });
    }
    expect(readdirSync(join(folder, 'real'))).toEqual(['later.db']);
    symlinkSync('circle.db', join(folder, 'circle.db'));
    await expect(open(join(folder, 'circle.db'))).rejects.toMatchObject({ code: 'Unavailable' });
  });
});

describe('a file that lost its companions', () => {
  test('is refused: a copy of an open store without its log, a hard link, another name', async () => {
    const crashed = join(folder, 'crashed.db');
    {
      await using state = await open();
      for (const id of ['a', 'b']) await state.create(thing(id));
      cpSync(file, join(folder, 'copy.db'));
      for (const extra of ['', '-wal', '-holder']) copyFileSync(`${file}${extra}`, `${crashed}${extra}`);
    }
    linkSync(crashed, join(folder, 'hard.db'));
    const missing = { code: 'Corrupt', message: expect.stringContaining('log') };
    // It is refused again, and as it was.
    for (const name of ['copy.db', 'hard.db', 'copy.db', 'hard.db']) await expect(open(join(folder, name))).rejects.toMatchObject(missing);
    {
      await using state = await open(crashed);
      expect(await ids(state)).toEqual(['a', 'b']);
    }
    // Closed, it may have any name.
    renameSync(crashed, join(folder, 'renamed.db'));
    await using state = await open(join(folder, 'renamed.db'));
    expect(await ids(state)).toEqual(['a', 'b']);
  });
});
