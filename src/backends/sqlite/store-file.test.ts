import { copyFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { inFreshFolder, kind, openRequest } from '../../../test/sqlite-world.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import type { Kind } from '../../resource/index.ts';
import { openDatabase } from './driver.ts';
import { StoreFailure } from './failures.ts';
import { readHead, writeHead } from './head.ts';
import { PackedRows } from './packed-rows.ts';
import type { OpenRequest, WriteMessage } from './protocol.ts';
import { StoreFile } from './store-file.ts';

const other: Kind = { namespace: 'äöü', type: 'Others.example.dev' };
let folder: string;
let file: string;

inFreshFolder(nodeEnvironment(), (...given) => {
  [folder, file] = given;
});

const open = (more: Partial<OpenRequest> = {}): StoreFile => new StoreFile(openRequest(file, more));

const create = (revision: number, id: string, record: string, of = kind): WriteMessage => ({
  kind: of,
  id,
  revision,
  uid: revision,
  oldVersion: null,
  record,
});
const change = (revision: number, id: string, uid: number, oldVersion: number, record: string | null, of = kind): WriteMessage => ({
  kind: of,
  id,
  revision,
  uid,
  oldVersion,
  record,
});

/** Everything that can be read from an open store. */
function contents(store: StoreFile): unknown {
  const { floor } = { floor: store.opened.historyFloor };
  const rows: unknown[] = [];
  const kindOf = new Map<number, Kind>();
  for (const { kinds, bytes } of store.load()) {
    for (const [number, of] of kinds) kindOf.set(number, of);
    const packed = new PackedRows(bytes);
    while (packed.next()) rows.push([kindOf.get(packed.kind), packed.id, packed.uid, packed.version, packed.record]);
  }
  return { opened: store.opened, rows, histories: [kind, other].map((of) => store.history(of, floor, store.opened.revision)) };
}

function code(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof StoreFailure) return error.failure.code;
    throw error;
  }
}

/** A small store with every kind of row. */
function fill(): unknown {
  const store = open();
  store.commit([create(1, 'a', '["first"]'), create(2, 'ü/b', '["second"]', other)], 1000);
  store.commit([change(3, 'a', 1, 1, '["third"]'), change(4, 'a', 1, 3, null), create(5, 'a', '["fifth"]')], 2000);
  store.commit(
    Array.from({ length: 30 }, (_, index) => create(6 + index, `n${index}`, `["${String(index).repeat(40)}"]`)),
    3000,
  );
  const all = contents(store);
  store.close();
  return all;
}

describe('the event log', () => {
  test('gives both values of every change of a kind, in order', () => {
    fill();
    const store = open();
    const value = (version: number, record: string) => ({ version, record });
    expect(store.history(kind, 0, 5)).toEqual([
      { revision: 1, uid: 1, id: 'a', old: undefined, value: value(1, '["first"]') },
      { revision: 3, uid: 1, id: 'a', old: value(1, '["first"]'), value: value(3, '["third"]') },
      { revision: 4, uid: 1, id: 'a', old: value(3, '["third"]'), value: undefined },
      { revision: 5, uid: 5, id: 'a', old: undefined, value: value(5, '["fifth"]') },
    ]);
    expect(store.history(other, 0, 100)).toMatchObject([{ revision: 2, id: 'ü/b' }]);
    expect(store.history(kind, 3, 4)).toMatchObject([{ revision: 4 }]);
    expect(store.history({ namespace: 'no', type: 'such' }, 0, 100)).toEqual([]);
    store.close();
  });

  test('is cut to its limit a little at each commit; the revision outlives it', () => {
    const store = open({ historyLimit: 10 });
    for (let revision = 1; revision <= 200; revision++) store.commit([create(revision, `n${revision}`, '[]')], 0);
    expect(store.opened).toMatchObject({ revision: 200, historyFloor: 190 });
    store.close();
    const again = open({ historyLimit: 0 });
    again.commit([create(201, 'last', '[]')], 0);
    expect(again.opened).toMatchObject({ revision: 201, historyFloor: 201 });
    again.close();
    const empty = open();
    expect(empty.opened).toMatchObject({ revision: 201, historyFloor: 201 });
    expect(empty.history(kind, 201, 201)).toEqual([]);
    empty.close();
  });

  test('is cut by age', () => {
    const store = open({ historyAgeMs: 60_000 });
    for (let revision = 1; revision <= 100; revision++) store.commit([create(revision, `n${revision}`, '[]')], revision * 1000);
    store.commit([create(101, 'later', '[]')], 130_000);
    store.commit([create(102, 'later still', '[]')], 190_000);
    // Events of second 70 and later are young at second 130; those of second 130 at second 190.
    expect(store.opened.historyFloor).toBe(100);
    store.close();
  });
});

describe('damage', () => {
  const refused = new Set(['Corrupt', 'Unsupported']);

  let attempts = 0;
  afterEach(() => {
    attempts = 0;
  });

  /** Opens these bytes as a store: they must be refused, or exactly right. */
  function verdict(bytes: Uint8Array, right: string): string {
    // A file of its own for each: the library may keep a refused one open.
    file = join(folder, `attempt-${attempts++}.db`);
    writeFileSync(file, bytes);
    let found: unknown;
    let store: StoreFile | undefined;
    const failure = code(() => {
      store = open();
      found = contents(store);
    });
    try {
      store?.close();
    } catch {
      // It was refused already.
    }
    if (failure !== undefined) return refused.has(failure) ? 'refused' : `failed as ${failure}`;
    return JSON.stringify(found) === right ? 'right' : 'wrong';
  }

  test('a flipped byte is refused or harmless, wherever it is', async () => {
    const right = JSON.stringify(fill());
    const bytes = readFileSync(file);
    const verdicts = new Map<string, number>();
    // Every byte of the header, and a sample of the rest.
    const step = 41;
    for (let place = 0; place < bytes.length; place += place < 110 ? 1 : step) {
      const damaged = Buffer.from(bytes);
      damaged[place] = (damaged[place] as number) ^ (1 << (place % 8));
      const found = verdict(damaged, right);
      // What a refused file left behind in the library is freed between turns only.
      if (attempts % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (found !== 'refused' && found !== 'right') throw new Error(`byte ${place} flipped: ${found}`);
      verdicts.set(found, (verdicts.get(found) ?? 0) + 1);
      for (const extra of ['', '-wal', '-shm', '-holder']) rmSync(`${file}${extra}`, { force: true });
    }
    expect(verdicts.get('refused')).toBeGreaterThan(20);
    expect(verdicts.get('right')).toBeGreaterThan(20);
  }, 120_000);

  test('a file cut off anywhere is refused', () => {
    const right = JSON.stringify(fill());
    const bytes = readFileSync(file);
    for (let length = 1; length < bytes.length; length += 397)
      expect([length, verdict(bytes.subarray(0, length), right)]).toEqual([length, 'refused']);
  });

  test('acknowledged writes that vanish with the write-ahead log are missed', () => {
    const store = open();
    store.commit([create(1, 'a', '[]')], 0);
    store.commit([create(2, 'b', '[]')], 0);
    store.noteCommitted();
    // As a kill leaves it: the file, its log, and the note of what was acknowledged.
    const crashed = join(folder, 'crashed.db');
    for (const extra of ['', '-wal', '-holder']) copyFileSync(`${file}${extra}`, `${crashed}${extra}`);
    store.close();
    const main = readFileSync(crashed);
    const wal = readFileSync(`${crashed}-wal`);
    const notes = readFileSync(`${crashed}-holder`);
    let attempts = 0;
    const attempt = (damage: (log: Buffer) => Buffer | undefined): string | undefined => {
      file = join(folder, `attempt-${attempts++}.db`);
      writeFileSync(file, main);
      writeFileSync(`${file}-holder`, notes);
      const log = damage(Buffer.from(wal));
      if (log === undefined) rmSync(`${file}-wal`, { force: true });
      else writeFileSync(`${file}-wal`, log);
      let found: StoreFile | undefined;
      const failure = code(() => {
        found = open();
      });
      found?.close();
      return failure;
    };
    expect(attempt((log) => log)).toBeUndefined();
    expect(
      attempt((log) => {
        log[log.length - 5000] = (log[log.length - 5000] as number) ^ 1;
        return log;
      }),
    ).toBe('Corrupt');
    expect(attempt((log) => log.subarray(0, -4120))).toBe('Corrupt');
    expect(attempt(() => undefined)).toBe('Corrupt');
    // Refusing it has changed nothing: it is refused again.
    expect(code(() => open())).not.toBeUndefined();
  });

  test('what is not ours, or newer, is told apart from damage', () => {
    const foreign = openDatabase(file);
    foreign.exec('CREATE TABLE notes (text TEXT)');
    foreign.close();
    expect(code(() => open())).toBe('Unsupported');
    rmSync(file);
    fill();
    const database = openDatabase(file);
    const head = readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value));
    if (head === undefined) throw new Error('no head');
    database.prepare('UPDATE meta SET value = ?').run(writeHead({ ...head, format: head.format + 1 }));
    database.exec('CREATE TABLE newer (what TEXT)');
    database.close();
    expect(code(() => open())).toBe('Unsupported');
  });

  test('a resource that went missing is missed, at the open and at its next write', () => {
    fill();
    const database = openDatabase(file);
    database.exec("DELETE FROM resources WHERE id = 'n3'");
    database.close();
    const store = open();
    expect(code(() => [...store.load()])).toBe('Corrupt');
    expect(code(() => store.commit([change(36, 'n3', 9, 9, '[]')], 0))).toBe('Corrupt');
    store.close();
  });

  test('an event that went missing is missed', () => {
    fill();
    const database = openDatabase(file);
    database.exec('DELETE FROM events WHERE revision = 2');
    database.close();
    const store = open();
    expect(code(() => store.history(kind, 0, 5))).toBe('Corrupt');
    store.close();
  });
});

describe('a full disk', () => {
  test('refuses to create; destroying goes on, and makes room', () => {
    const store = open({ maxPages: 64 });
    const record = JSON.stringify(['x'.repeat(2000)]);
    let revision = 0;
    const failed = code(() => {
      for (;;) {
        store.commit([create(revision + 1, `n${revision + 1}`, record)], 0);
        revision++;
      }
    });
    expect(failed).toBe('NoSpace');
    const kept = revision;
    expect(kept).toBeGreaterThan(20);
    const { historyFloor } = store.opened;
    for (let uid = 1; uid <= kept; uid++) {
      store.commit([change(revision + 1, `n${uid}`, uid, uid, null)], 0);
      revision++;
    }
    // The event log gave way, and says so.
    expect(store.opened.historyFloor).toBeGreaterThan(historyFloor);
    store.commit([create(revision + 1, 'again', record)], 0);
    expect(contents(store)).toMatchObject({ rows: [[kind, 'again', revision + 1, revision + 1, record]] });
    store.close();
  });

  test('leaves nothing of a failed batch behind, new kinds included', () => {
    const store = open({ maxPages: 16 });
    const record = JSON.stringify(['x'.repeat(30_000)]);
    expect(code(() => store.commit([create(1, 'a', '[]', other), create(2, 'b', record), create(3, 'c', record)], 0))).toBe('NoSpace');
    store.commit([create(1, 'small', '[]', other)], 0);
    expect(contents(store)).toMatchObject({ opened: { revision: 1 }, rows: [[other, 'small', 1, 1, '[]']] });
    store.close();
  });
});

test('resources are given in pieces, whatever their size and their names', () => {
  const store = open();
  const ids = ['1/2 3', '/', '漢字', ...Array.from({ length: 700 }, (_, index) => `n${index}`)];
  const recordOf = (index: number): string => JSON.stringify([`${index}\u0000ü/`, 'x'.repeat(index === 300 ? 3_000_000 : index % 7)]);
  store.commit(
    ids.map((id, index) => create(index + 1, id, recordOf(index), index % 2 === 0 ? kind : other)),
    0,
  );
  const { rows } = contents(store) as { readonly rows: readonly unknown[] };
  expect(rows).toEqual(ids.map((id, index) => [index % 2 === 0 ? kind : other, id, index + 1, index + 1, recordOf(index)]));
  store.close();
});

test('the write-ahead log is folded in, and gone after the end', () => {
  const store = open();
  const record = JSON.stringify(['x'.repeat(2000)]);
  let revision = 0;
  let largest = 0;
  for (let round = 0; round < 60; round++) {
    store.commit(
      Array.from({ length: 250 }, () => create(++revision, `n${revision}`, record)),
      0,
    );
    store.noteCommitted();
    largest = Math.max(largest, statSync(`${file}-wal`).size);
  }
  expect(statSync(file).size).toBeGreaterThan(20_000_000);
  expect(largest).toBeLessThan(16_000_000);
  store.close();
  for (const extra of ['-wal', '-holder', '-reserve']) expect(existsSync(`${file}${extra}`)).toBe(false);
});
