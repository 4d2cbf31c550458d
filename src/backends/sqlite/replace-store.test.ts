import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { seal } from './checksum.ts';
import { openDatabase } from './driver.ts';
import { identityOf } from './file-identity.ts';
import { openSqliteState, repairStore, restoreStore, storeFileAdmin } from './index.ts';
import type { SqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const thing = (id: string, spec: unknown = { size: 1 }, of = kind) => ({ metadata: { ...of, id }, spec });
let folder: string;
let file: string;
let copy: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-replace-'));
  file = join(folder, 'state.db');
  copy = join(folder, 'copy.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

const open = (path = file): Promise<SqliteState> => openSqliteState({ file: path, environment });
const check = (path = file) => storeFileAdmin({ file: path, environment }).check();
const ids = async (state: SqliteState): Promise<string[]> => (await state.list(kind)).items.map(({ metadata }) => metadata.id);

/** The files of a store as a kill leaves them, under another name. */
function crash(state: SqliteState, to: string): void {
  expect(state.revision).toBeGreaterThan(0);
  for (const end of ['', '-wal', '-holder']) copyFileSync(`${file}${end}`, `${to}${end}`);
}

function damage(path: string, change: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = readFileSync(path);
  writeFileSync(path, change(bytes) ?? bytes);
}

/** Pages of a file that hold some text. */
function pagesWith(bytes: Buffer, text: string): number[] {
  return Array.from({ length: bytes.length / 4096 }, (_, page) => page * 4096).filter((page) =>
    bytes.subarray(page, page + 4096).includes(text),
  );
}

describe('restore', () => {
  test('brings a backup back; the store that was there stays; no bookmark and no version of either fits by mistake', async () => {
    let before: SqliteState;
    let bookmark: import('../../state/index.ts').Bookmark | undefined;
    {
      await using state = await open();
      before = state;
      await state.create(thing('a'));
      await state.create(thing('b'));
      await state.admin.backup(copy);
      await state.destroy({ ...kind, id: 'a' });
      await state.create(thing('later'));
      for await (const event of await state.watchKind(kind, { tailEvents: 1 })) {
        bookmark = event.bookmark;
        break;
      }
    }
    const done = await restoreStore({ file, backup: copy, environment });
    expect(done).toMatchObject({ file, resources: 2 });
    expect(done.revision).toBeGreaterThan(before.revision + 2 ** 32);
    expect((await check()).findings).toEqual([]);
    expect((await check(done.replaced)).findings).toEqual([]);
    {
      await using old = await open(done.replaced);
      expect(await ids(old)).toEqual(['b', 'later']);
    }
    await using state = await open();
    expect(await ids(state)).toEqual(['a', 'b']);
    expect(state.storeId).toBe(done.storeId);
    expect(state.storeId).not.toBe(before.storeId);
    await expect(state.watchKind(kind, { startFromBookmark: bookmark as never })).rejects.toMatchObject({ code: 'InvalidBookmark' });
    expect(Number((await state.create(thing('new'))).metadata.version)).toBe(done.revision + 1);
    // The backup itself is still one.
    expect((await check(copy)).findings).toEqual([]);
  });

  test('goes past what the first restore handed out, even where the store in between is lost', async () => {
    {
      await using state = await open();
      await state.create(thing('a'));
      await state.admin.backup(copy);
    }
    let now = environment.now();
    const clocked = { ...environment, now: () => now };
    await restoreStore({ file, backup: copy, environment: clocked });
    const handedOut: number[] = [];
    {
      await using state = await open();
      for (let n = 0; n < 50; n++) handedOut.push(Number((await state.create(thing(`n${n}`))).metadata.version));
    }
    rmSync(file);
    now += 1000;
    await restoreStore({ file, backup: copy, environment: clocked });
    await using state = await open();
    expect(Number((await state.create(thing('x'))).metadata.version)).toBeGreaterThan(Math.max(...handedOut));
  });

  test('of a store that was killed keeps its write-ahead log with it', async () => {
    const crashed = join(folder, 'crashed.db');
    {
      await using state = await open();
      await state.create(thing('a'));
      await state.admin.backup(copy);
      for (let n = 0; n < 20; n++) await state.create(thing(`n${n}`));
      crash(state, crashed);
    }
    const { replaced } = await restoreStore({ file: crashed, backup: copy, environment });
    await using state = await open(crashed);
    expect(await ids(state)).toEqual(['a']);
    await using old = await open(replaced);
    expect(await ids(old)).toHaveLength(21);
  });

  test('is refused beside a running server, from a damaged backup, and from itself; nothing is changed then', async () => {
    {
      await using state = await open();
      await state.create(thing('a'));
      await state.admin.backup(copy);
      await state.create(thing('b'));
      await expect(restoreStore({ file, backup: copy, environment })).rejects.toMatchObject({ code: 'Locked', holder: /process \d+/ });
      await expect(restoreStore({ file: copy, backup: file, environment })).rejects.toMatchObject({ code: 'Locked' });
    }
    await expect(restoreStore({ file, backup: file, environment })).rejects.toMatchObject({ code: 'Invalid' });
    await expect(restoreStore({ file, backup: join(folder, 'none.db'), environment })).rejects.toMatchObject({ code: 'NotFound' });
    const database = openDatabase(copy);
    database.exec("UPDATE resources SET record = replace(record, '1', '2')");
    database.close();
    await expect(restoreStore({ file, backup: copy, environment })).rejects.toMatchObject({
      code: 'Corrupt',
      message: /copy\.db is damaged: Things\.example\.dev\/default\/a: the record/,
    });
    writeFileSync(copy, '');
    await expect(restoreStore({ file, backup: copy, environment })).rejects.toMatchObject({ code: 'Unsupported' });
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'state.db']);
    await using state = await open();
    expect(await ids(state)).toEqual(['a', 'b']);
  });

  test('takes the place of a damaged store, and of none', async () => {
    {
      await using state = await open();
      await state.create(thing('a'));
      await state.admin.backup(copy);
    }
    damage(file, (bytes) => bytes.fill(7, 0, 4096));
    const { replaced } = await restoreStore({ file, backup: copy, environment });
    expect(readFileSync(replaced as string)[5]).toBe(7);
    rmSync(file);
    expect((await restoreStore({ file, backup: copy, environment })).replaced).toBeUndefined();
    await using state = await open();
    expect(await ids(state)).toEqual(['a']);
  });

  test('a backup that was copied over a killed store by hand is not mixed with its log', async () => {
    const crashed = join(folder, 'crashed.db');
    {
      await using state = await open();
      await state.create(thing('a'));
      await state.admin.backup(copy);
      await state.create(thing('b'));
      crash(state, crashed);
    }
    copyFileSync(copy, crashed);
    await expect(open(crashed)).rejects.toMatchObject({ code: 'Corrupt', message: /another store than the one that .*-wal belongs to/ });
    await restoreStore({ file: crashed, backup: copy, environment });
    await using state = await open(crashed);
    expect(await ids(state)).toEqual(['a']);
  });
});

describe('a replacement that was cut off', () => {
  /** A store that was killed with its log beside it, and a new file that is to take its place. */
  async function killedAndNew(): Promise<{ readonly crashed: string; readonly made: string; readonly note: string }> {
    const crashed = join(folder, 'crashed.db');
    await using state = await open();
    await state.create(thing('a'));
    await state.admin.backup(copy);
    await state.create(thing('b'));
    crash(state, crashed);
    const { storeId } = await check(copy);
    const leftovers = ['-wal', '-holder'].map((end) => [end, identityOf(`${crashed}${end}`)]);
    return { crashed, made: copy, note: seal(JSON.stringify({ storeId, leftovers })) };
  }

  test('before the new file had its name: the old store is there, with its log', async () => {
    const { crashed, note } = await killedAndNew();
    writeFileSync(`${crashed}-handover`, note);
    await using state = await open(crashed);
    expect(await ids(state)).toEqual(['a', 'b']);
    expect(existsSync(`${crashed}-handover`)).toBe(false);
  });

  test('after it: the new store is there, without the log of the old one', async () => {
    const { crashed, made, note } = await killedAndNew();
    writeFileSync(`${crashed}-handover`, note);
    renameSync(made, crashed);
    await using state = await open(crashed);
    expect(await ids(state)).toEqual(['a']);
    expect(existsSync(`${crashed}-handover`)).toBe(false);
    await state.create(thing('c'));
  });

  test('a note that cannot be read is no hindrance', async () => {
    const { crashed, made } = await killedAndNew();
    writeFileSync(`${crashed}-handover`, 'damaged');
    rmSync(`${crashed}-wal`);
    rmSync(`${crashed}-holder`);
    renameSync(made, crashed);
    await using state = await open(crashed);
    expect(await ids(state)).toEqual(['a']);
  });

  test('a second name that was left of the store in use goes at the next try', async () => {
    await using state = await open();
    await state.create(thing('a'));
    await state.admin.backup(copy);
    await state[Symbol.asyncDispose]();
    linkSync(file, `${file}.replaced-1`);
    const { replaced } = await restoreStore({ file, backup: copy, environment });
    expect(existsSync(`${file}.replaced-1`)).toBe(false);
    expect((await check(replaced)).findings).toEqual([]);
  });
});

describe('repair', () => {
  /** A store with a hundred resources on several pages, two kinds, long and short ones. */
  async function fill(): Promise<void> {
    await using state = await open();
    for (let n = 0; n < 100; n++) await state.create(thing(`n${n}`, { n, pad: 'x'.repeat(n % 10 === 0 ? 9000 : 200) }));
    await state.create(thing('other', 1, { namespace: 'ü', type: 'Others.example.dev' }));
    for (let n = 90; n < 95; n++) await state.destroy({ ...kind, id: `n${n}` });
    for (let n = 0; n < 5; n++) await state.update(await state.get({ ...kind, id: `n${n}` }));
  }

  test('of a right store changes nothing but its identity and its events', async () => {
    await fill();
    const bytes = readFileSync(file);
    const done = await repairStore({ file, environment });
    expect(done).toMatchObject({ resources: 96, recovered: 0, dropped: [], more: 0, lost: 0 });
    expect(readFileSync(done.kept)).toEqual(bytes);
    expect(await check()).toMatchObject({ findings: [], resources: 96, events: 0, revision: done.revision, storeId: done.storeId });
    await using state = await open();
    expect((await state.get({ ...kind, id: 'n50' })).metadata).toMatchObject({ uid: '51', version: '51' });
  });

  test('drops what does not match its checksum, by name, and keeps the rest of its page', async () => {
    await fill();
    damage(file, (bytes) => {
      const at = bytes.indexOf('"n":41,');
      bytes[at + 4] = 0x35;
      return bytes;
    });
    const done = await repairStore({ file, environment });
    expect(done).toMatchObject({ resources: 95, lost: 0 });
    expect(done.dropped).toEqual(
      [{ place: 'Things.example.dev/default/n41', message: /dropped: its record \(uid 42, version 42\)/ }].map((each) => ({
        ...each,
        message: expect.stringMatching(each.message),
      })),
    );
    expect((await check()).findings).toEqual([]);
  });

  test('keeps the rows of a page whose head is destroyed', async () => {
    await fill();
    damage(file, (bytes) => {
      const [first] = pagesWith(bytes, '"n":55,');
      return bytes.fill(0xff, first, (first as number) + 8);
    });
    const done = await repairStore({ file, environment });
    expect(done.resources).toBe(96);
    expect(done.recovered).toBeGreaterThan(3);
    expect([done.dropped, done.lost]).toEqual([[], 0]);
    expect((await check()).findings).toEqual([]);
  });

  test('finds the rows that a page does not list any more', async () => {
    await fill();
    damage(file, (bytes) => {
      const [first = 0] = pagesWith(bytes, '"n":55,');
      expect(bytes[first]).toBe(0x0d);
      // It says that it has two rows.
      return bytes.fill(2, first + 4, first + 5);
    });
    expect((await check()).findings.length).toBeGreaterThan(0);
    const done = await repairStore({ file, environment });
    expect([done.resources, done.dropped, done.lost]).toEqual([96, [], 0]);
  });

  test('says what is gone with a page, as far as the events know it', async () => {
    await fill();
    let gone: string[] = [];
    damage(file, (bytes) => {
      const [first = 0] = pagesWith(bytes, '"n":55,');
      gone = [
        ...bytes
          .subarray(first, first + 4096)
          .toString('latin1')
          .matchAll(/"n":(\d+),/g),
      ].map((match) => `n${match[1]}`);
      return bytes.fill(0, first, first + 4096);
    });
    const done = await repairStore({ file, environment });
    expect(gone.length).toBeGreaterThan(3);
    expect(done.dropped.map(({ place }) => place.split('/')[2]).sort()).toEqual(gone.sort());
    expect([done.resources, done.lost]).toEqual([96 - gone.length, 0]);
    expect((await check()).findings).toEqual([]);
  });

  test('finds the rows again when nothing leads to them', async () => {
    await fill();
    // The page that names the tables, and the middle of the tree of resources.
    damage(file, (bytes) => bytes.fill(0, 0, 4096));
    const done = await repairStore({ file, environment });
    expect(done).toMatchObject({ resources: 96, recovered: 96, dropped: [], lost: 0 });
    expect((await check()).findings).toEqual([]);
  });

  test('nor is any byte of the page that names the tables in the way', async () => {
    await fill();
    const whole = readFileSync(file);
    for (const at of [0, 17, 100, 103, 104, 108, 109, 4090]) {
      const path = join(folder, `flipped-${at}.db`);
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] as number) ^ 1;
      writeFileSync(path, bytes);
      expect([at, (await check(path)).findings.length > 0]).toEqual([at, true]);
      const done = await repairStore({ file: path, environment });
      expect([at, done.resources, done.dropped, done.lost]).toEqual([at, 96, [], 0]);
    }
  });

  test('the head and the event log are made anew', async () => {
    await fill();
    const database = openDatabase(file);
    database.exec('DELETE FROM meta; DELETE FROM events WHERE revision IN (3, 111)');
    database.close();
    await expect(open()).rejects.toMatchObject({ code: 'Corrupt' });
    const done = await repairStore({ file, environment });
    expect(done).toMatchObject({ resources: 96, lost: 0 });
    await using state = await open();
    expect(Number((await state.create(thing('new'))).metadata.version)).toBe(done.revision + 1);
  });

  test('takes out of a damaged write-ahead log what is behind the damage', async () => {
    const crashed = join(folder, 'crashed.db');
    {
      await using state = await open();
      for (let n = 0; n < 30; n++) await state.create(thing(`n${n}`));
      await state.destroy({ ...kind, id: 'n3' });
      crash(state, crashed);
    }
    // One frame in the middle is damaged: SQLite takes that for the end.
    damage(`${crashed}-wal`, (bytes) => {
      const at = Math.floor(bytes.length / 4120 / 2) * 4120 + 32 + 24 + 4000;
      bytes[at] = (bytes[at] as number) ^ 1;
      return bytes;
    });
    await expect(open(crashed)).rejects.toMatchObject({ code: 'Corrupt' });
    const kept = readFileSync(`${crashed}-wal`);
    const done = await repairStore({ file: crashed, environment });
    expect(done.resources + done.dropped.length).toBe(29);
    expect(done.resources).toBeGreaterThan(27);
    expect(readFileSync(`${done.kept}-wal`)).toEqual(kept);
    expect(existsSync(`${crashed}-wal`)).toBe(false);
    await using state = await open(crashed);
    expect(await ids(state)).not.toContain('n3');
  });

  test('is refused for what is open, missing, or none of ours', async () => {
    await expect(repairStore({ file, environment })).rejects.toMatchObject({ code: 'NotFound' });
    const foreign = openDatabase(file);
    foreign.exec('CREATE TABLE notes (text TEXT)');
    foreign.close();
    await expect(repairStore({ file, environment })).rejects.toMatchObject({ code: 'Unsupported' });
    rmSync(file);
    await using _state = await open();
    await expect(repairStore({ file, environment })).rejects.toMatchObject({ code: 'Locked', holder: /process \d+/ });
  });

  test('is green after any damage: bytes flipped, filled, cut off', async () => {
    await fill();
    const whole = readFileSync(file);
    for (let round = 0; round < 24; round++) {
      const path = join(folder, `round-${round}.db`);
      const random = (most: number): number => Math.floor(Math.abs(Math.sin(round * 7.7 + most)) * most);
      const bytes = Buffer.from(whole);
      if (round % 4 === 0) bytes.fill(round, random(bytes.length - 600), random(bytes.length - 600) + 600);
      else if (round % 4 === 1) for (let n = 0; n < 20; n++) bytes[(random(bytes.length) * (n + 1)) % bytes.length] = n * 13;
      else if (round % 4 === 2) bytes.fill(0xff, (random(bytes.length / 4096) % (bytes.length / 4096)) * 4096, undefined);
      writeFileSync(path, round % 4 === 3 ? bytes.subarray(0, Math.max(600, random(bytes.length))) : bytes);
      const done = await repairStore({ file: path, environment });
      const { findings, resources } = await check(path);
      expect([round, findings, resources]).toEqual([round, [], done.resources]);
      expect(done.resources).toBeLessThanOrEqual(96);
      await (await open(path))[Symbol.asyncDispose]();
    }
  }, 120_000);
});

describe('a kill in the middle', () => {
  const program = (work: string): string => `
    import { nodeEnvironment } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)};
    import { repairStore, restoreStore, storeFileAdmin } from ${JSON.stringify(new URL('../../../dist/backends/sqlite/index.js', import.meta.url).href)};
    const environment = nodeEnvironment();
    const file = ${JSON.stringify(file)};
    console.log('begun');
    ${work}
    console.log('done');
  `;

  /** Kills a program some time after it began; answers whether it had come to its end. */
  async function killed(work: string, afterMs: number): Promise<boolean> {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program(work)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    let done = false;
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === 'begun') setTimeout(() => child.kill('SIGKILL'), afterMs);
      if (line === 'done') done = true;
    }
    await exited;
    return done;
  }

  test.each([
    ['restore', `await restoreStore({ file, backup: file + '.copy', environment });`, [50, 400]],
    ['repair', 'await repairStore({ file, environment });', [400, 400]],
    ['compact', 'await storeFileAdmin({ file, environment }).compact({ keep: 0 });', [400, 400]],
    ['backup', `await storeFileAdmin({ file, environment }).backup(file + '.made', { force: true });`, [400, 400]],
  ])(
    'of %s leaves the old store or the new one',
    async (_name, work, counts) => {
      {
        await using state = await open();
        for (let n = 0; n < 400; n++) {
          await state.create(thing(`n${n}`, { pad: 'x'.repeat(500) }));
          if (n === 49) await state.admin.backup(`${file}.copy`);
        }
      }
      let ends = 0;
      for (let round = 0; round < 7; round++) {
        ends += Number(await killed(work, round * 20));
        const { findings, resources } = await check();
        expect([round, findings]).toEqual([round, []]);
        expect(counts).toContain(resources);
        if (existsSync(`${file}.made`)) expect(await check(`${file}.made`)).toMatchObject({ findings: [], resources: 400 });
        await (await open())[Symbol.asyncDispose]();
      }
      // Once it has its time it gets there.
      expect(await killed(work, 30_000)).toBe(true);
      expect(ends).toBeLessThan(7);
    },
    120_000,
  );

  test('of restore and repair over a store that was killed itself, its log beside it', async () => {
    const crashed = join(folder, 'crashed.db');
    {
      await using state = await open();
      for (let n = 0; n < 40; n++) await state.create(thing(`n${n}`));
      await state.admin.backup(copy);
      for (let n = 40; n < 60; n++) await state.create(thing(`n${n}`));
      crash(state, crashed);
    }
    const original = new Map(['', '-wal', '-holder'].map((end) => [end, readFileSync(`${crashed}${end}`)]));
    let ends = 0;
    for (let round = 0; round < 12; round++) {
      for (const name of readdirSync(folder)) if (name.startsWith('state.db')) rmSync(join(folder, name));
      for (const [end, bytes] of original) writeFileSync(`${file}${end}`, bytes);
      const work =
        round % 2 === 0
          ? `await restoreStore({ file, backup: ${JSON.stringify(copy)}, environment });`
          : 'await repairStore({ file, environment });';
      ends += Number(await killed(work, 40 + round * 8));
      await using state = await open();
      expect([40, 60]).toContain((await ids(state)).length);
      expect((await state.admin.check()).findings).toEqual([]);
    }
    expect(ends).toBeLessThan(12);
  }, 120_000);
});
