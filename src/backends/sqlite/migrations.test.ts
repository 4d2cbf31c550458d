import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { eventChecksum, kindSeed, resourceChecksum } from './checksum.ts';
import { openDatabase } from './driver.ts';
import { formatVersion, readHead, toggle, writeHead } from './head.ts';
import { applicationId, tables } from './schema.ts';
import { openSqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const storeId = '00112233445566778899aabbccddeeff';
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-formats-'));
  file = join(folder, 'state.db');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A store as programs of format 1 left it: the same tables, whose free pages stayed in the file. */
function writeFormat1(count: number): void {
  const database = openDatabase(file);
  database.exec(`PRAGMA application_id = ${applicationId}; ${Object.values(tables).join('; ')}; BEGIN`);
  database.prepare('INSERT INTO kinds VALUES (1, ?, ?)').run(kind.namespace, kind.type);
  const seed = kindSeed(kind);
  let digest = 0;
  for (let uid = 1; uid <= count; uid++) {
    const id = `n${uid}`;
    const record = JSON.stringify([
      [0, '', ['held'], {}, {}, '2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z'],
      { n: uid, pad: 'x'.repeat(300) },
    ]);
    database
      .prepare('INSERT INTO resources (uid, version, kind, id, crc, record) VALUES (?, ?, 1, ?, ?, ?)')
      .run(uid, uid, id, resourceChecksum(seed, uid, uid, id, record), record);
    digest = toggle(digest, uid, uid);
    const crc = eventChecksum(seed, { revision: uid, uid, id, change: 0, at: 5, floor: 0, count: uid, digest, oldVersion: null });
    database
      .prepare('INSERT INTO events (revision, kind, uid, id, change, at, floor, count, digest, crc) VALUES (?, 1, ?, ?, 0, 5, 0, ?, ?, ?)')
      .run(uid, uid, id, uid, digest, crc);
  }
  database
    .prepare('INSERT INTO meta VALUES (?, ?)')
    .run('head', writeHead({ format: 1, storeId, revision: count, floor: 0, count, digest }));
  database.exec('COMMIT');
  database.close();
}

function look<Value>(read: (database: ReturnType<typeof openDatabase>) => Value): Value {
  const database = openDatabase(file, { readOnly: true });
  try {
    return read(database);
  } finally {
    database.close();
  }
}

const headOf = () => look((database) => readHead(String(database.prepare('SELECT value FROM meta').get()?.value)));
const shrinkable = () => look((database) => database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum);

test('a file of format 1 is brought up to the present one, with everything in it', async () => {
  writeFormat1(500);
  expect([headOf()?.format, shrinkable()]).toEqual([1, 0]);
  {
    await using state = await openSqliteState({ file, environment });
    expect([state.storeId, state.revision]).toEqual([storeId, 500]);
    const { items } = await state.list(kind);
    expect(items).toHaveLength(500);
    expect(items.find(({ metadata }) => metadata.id === 'n17')).toMatchObject({
      metadata: { uid: '17', version: '17', finalizers: ['held'] },
      spec: { n: 17 },
    });
    const events = await state.watchKind(kind, { tailEvents: 500 });
    const first = await events[Symbol.asyncIterator]().next();
    expect(first.value).toMatchObject({ type: 'created', revision: 1 });
    await events[Symbol.asyncDispose]();
    expect((await state.create({ metadata: { ...kind, id: 'new' }, spec: 1 })).metadata.version).toBe('501');
  }
  expect([headOf()?.format, shrinkable(), existsSync(`${file}-wal`)]).toEqual([formatVersion, 2, false]);
  await using again = await openSqliteState({ file, environment });
  expect(again.revision).toBe(501);
});

test('a step that was cut off before its end is done again', async () => {
  writeFormat1(5);
  const database = openDatabase(file);
  database.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
  database.close();
  expect([headOf()?.format, shrinkable()]).toEqual([1, 2]);
  await using state = await openSqliteState({ file, environment });
  expect(state.revision).toBe(5);
});

test('a file that is refused keeps its format', async () => {
  writeFormat1(5);
  const database = openDatabase(file);
  database.exec('DELETE FROM events WHERE revision = 5');
  database.close();
  await expect(openSqliteState({ file, environment })).rejects.toMatchObject({ code: 'Corrupt' });
  expect([headOf()?.format, shrinkable()]).toEqual([1, 0]);
});

test('a new file can give pages back', async () => {
  await (await openSqliteState({ file, environment }))[Symbol.asyncDispose]();
  expect(shrinkable()).toBe(2);
});
