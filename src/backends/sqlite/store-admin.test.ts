import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inFreshFolder, kind, thing } from '../../../test/sqlite-world.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import type { Resource } from '../../resource/index.ts';
import { Bytes, isLockedError } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import { openDatabase } from './driver.ts';
import { openSqliteState, storeFileAdmin } from './index.ts';
import type { SqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
const other = { namespace: 'äöü', type: 'Others.example.dev' };
let folder: string;
let file: string;

inFreshFolder(environment, (...given) => {
  [folder, file] = given;
});

const open = (more: Partial<Parameters<typeof openSqliteState>[0]> = {}): Promise<SqliteState> =>
  openSqliteState({ file, environment, ...more });

const admin = () => storeFileAdmin({ file, environment });

/** Everything in a store, as text that can be compared. */
async function contents(state: SqliteState): Promise<string> {
  const all = await Promise.all([kind, other].map(async (of) => (await state.list(of)).items));
  return JSON.stringify(all.flat().map(({ metadata, spec }) => [metadata, String(spec), JSON.stringify(spec)]));
}

async function collect<Value>(from: AsyncIterable<Value>): Promise<Value[]> {
  const all: Value[] = [];
  for await (const value of from) all.push(value);
  return all;
}

function damage(path: string, change: (database: ReturnType<typeof openDatabase>) => void): void {
  const database = openDatabase(path);
  change(database);
  database.close();
}

describe('check', () => {
  test('finds nothing wrong with a store, open or closed, and changes nothing of a closed one', async () => {
    {
      await using state = await open();
      for (let n = 0; n < 50; n++) await state.create(thing(`n${n}`));
      await state.destroy({ ...kind, id: 'n7' });
      await state.update(await state.get({ ...kind, id: 'n8' }));
      const seen: string[] = [];
      expect(await state.admin.check({ onProgress: ({ step }) => seen.push(step) })).toMatchObject({
        findings: [],
        more: 0,
        storeId: state.storeId,
        format: 2,
        revision: 52,
        floor: 0,
        resources: 49,
        events: 52,
      });
      expect(seen).toContain('checking pages');
    }
    const before = [readFileSync(file), statSync(file).mtimeMs];
    expect(await admin().check()).toMatchObject({ findings: [], revision: 52, resources: 49, events: 52 });
    expect([readFileSync(file), statSync(file).mtimeMs]).toEqual(before);
    expect(readdirSync(folder)).toEqual(['state.db']);
  });

  test('goes on beside writers', async () => {
    await using state = await open({ historyLimit: 300 });
    for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 100 }, (_, m) => state.create(thing(`n${n * 100 + m}`))));
    let writing = true;
    let round = 0;
    const writer = (async () => {
      for (; writing; round++) {
        await state.create(thing(`w${round}`));
        await state.update(await state.get({ ...kind, id: `n${(round * 37) % 2000}` }));
        if (round % 2 === 0) await state.destroy({ ...kind, id: `w${round}` });
      }
    })();
    for (let n = 0; n < 5; n++) expect(await state.admin.check({ quick: true })).toMatchObject({ findings: [], more: 0 });
    writing = false;
    await writer;
    expect(round).toBeGreaterThan(2);
  });

  test('names everything that is wrong, and where', async () => {
    {
      await using state = await open();
      for (let n = 1; n <= 20; n++) await state.create(thing(`n${n}`));
    }
    damage(file, (database) => {
      database.exec("UPDATE resources SET record = replace(record, '1', '2') WHERE id = 'n3'");
      database.exec("DELETE FROM resources WHERE id = 'n4'");
      database.exec('DELETE FROM events WHERE revision = 9');
      database.exec('UPDATE events SET at = at + 1 WHERE revision = 12');
    });
    const { findings } = await admin().check();
    expect(findings).toEqual([
      { place: 'Things.example.dev/default/n3', message: 'the record of uid 3, version 3, does not match its checksum' },
      { place: 'resources', message: '20 were written, 19 are found' },
      { place: 'event 10', message: 'event 9 is missing' },
      { place: 'event 12', message: 'does not match its checksum (it names n12, uid 12)' },
      { place: 'event 4', message: 'it leads to uid 4 at version 4, which is not there' },
    ]);
  });

  test('reads what is behind a page that cannot be read', async () => {
    {
      await using state = await open();
      for (let n = 1; n <= 100; n++) await state.create(thing(`n${n}`, { pad: 'x'.repeat(500) }));
    }
    const bytes = readFileSync(file);
    // The page that holds the middle of them, cut to pieces.
    const pages = Array.from({ length: bytes.length / 4096 }, (_, page) => page * 4096).filter((page) =>
      bytes.subarray(page, page + 4096).includes('x'.repeat(100)),
    );
    const at = pages[Math.floor(pages.length / 2)] as number;
    bytes.fill(0xff, at, at + 8);
    writeFileSync(file, bytes);
    const { findings, resources } = await admin().check();
    expect(findings.some(({ place, message }) => place === 'resources' && /from uid \d+ to \d+ cannot be read/.test(message))).toBe(true);
    expect(resources).toBeGreaterThan(80);
    expect(resources).toBeLessThan(100);
  });

  test('misses acknowledged writes that went with the write-ahead log', async () => {
    await using state = await open();
    await state.create(thing('a'));
    const crashed = join(folder, 'crashed.db');
    for (const end of ['', '-wal', '-holder']) writeFileSync(`${crashed}${end}`, readFileSync(`${file}${end}`));
    const check = () => storeFileAdmin({ file: crashed, environment }).check();
    expect((await check()).findings).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.startsWith('crashed'))).toHaveLength(3);
    await state.create(thing('b'));
    // The note of it is written behind the answer, and before the next.
    await state.admin.check({ quick: true });
    writeFileSync(`${crashed}-holder`, readFileSync(`${file}-holder`));
    expect((await check()).findings).toMatchObject([{ place: 'side file', message: /revision 2 was acknowledged, the file ends at 1/ }]);
  });

  test('a missing file, a foreign one, a newer one and one in use are refused', async () => {
    await expect(admin().check()).rejects.toMatchObject({ code: 'NotFound' });
    damage(file, (database) => database.exec('CREATE TABLE notes (text TEXT)'));
    await expect(admin().check()).rejects.toMatchObject({ code: 'Unsupported' });
    rmSync(file);
    await using _state = await open();
    await expect(admin().check()).rejects.toSatisfy((error) => isLockedError(error) && /is in use by process \d+/.test(String(error)));
  });

  test('what an opening refuses is a finding, whatever byte of the header it comes from', async () => {
    {
      await using state = await open();
      for (let n = 1; n <= 5; n++) await state.create(thing(`n${n}`));
    }
    const whole = readFileSync(file);
    for (let at = 0; at < 100; at += at >= 16 && at < 24 ? 1 : 7) {
      const path = join(folder, `flipped-${at}.db`);
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
      writeFileSync(path, bytes);
      const found = await storeFileAdmin({ file: path, environment })
        .check()
        .then(({ findings }) => findings.length > 0)
        .catch((error) => error.code);
      const refused = await openSqliteState({ file: path, environment })
        .then((state) => state[Symbol.asyncDispose]())
        .then(() => false)
        .catch(() => true);
      if (refused && found === false) throw new Error(`byte ${at}: an opening refuses it, a check finds nothing`);
    }
  }, 60_000);

  test('what is no database at all is a finding', async () => {
    writeFileSync(file, 'not a database, whatever it looks like'.repeat(100));
    expect((await admin().check()).findings).toMatchObject([{ place: 'file' }]);
    writeFileSync(file, 'short');
    expect((await admin().check()).findings).toMatchObject([{ place: 'file', message: /only 5 bytes/ }]);
  });
});

describe('backup', () => {
  test('is a store of its own with everything in it', async () => {
    const copy = join(folder, 'copy.db');
    let before: string;
    let storeId: string;
    {
      await using state = await open();
      await state.create(thing('a', { big: 2n ** 70n, bytes: Bytes.from(new Uint8Array([0, 255])) }));
      await state.create(thing('ü/b', 'text', other), { owner: 'somebody' });
      await state.create({ metadata: { ...kind, id: 'held', finalizers: ['f'], phase: 'tearingDown' }, spec: 1 });
      await state.destroy({ ...kind, id: 'a' });
      await state.create(thing('a', [1]));
      before = await contents(state);
      storeId = state.storeId;
      expect(await state.admin.backup(copy)).toMatchObject({ file: copy, resources: 3, revision: 5 });
      await state.create(thing('later'));
    }
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect((await storeFileAdmin({ file: copy, environment }).check()).findings).toEqual([]);
    await using again = await openSqliteState({ file: copy, environment });
    expect(await contents(again)).toBe(before);
    expect(again.revision).toBe(5);
    // It is another store: no bookmark of the first leads into it.
    expect(again.storeId).not.toBe(storeId);
  });

  test('is the store at one revision while writes go on', async () => {
    const copy = join(folder, 'copy.db');
    await using state = await open({ historyLimit: 10 });
    for (let n = 0; n < 30; n++) await Promise.all(Array.from({ length: 100 }, (_, m) => state.create(thing(`n${n * 100 + m}`, { n: 0 }))));
    const events: StateEvent[] = [];
    const aborter = new AbortController();
    const watch = await state.watchKind(kind, { bootstrapContents: true, signal: aborter.signal });
    const watching = (async () => {
      for await (const event of watch) events.push(event);
    })();
    let done = false;
    let rounds = 0;
    const writer = async (seed: number): Promise<void> => {
      for (let n = 0; !done; n++, rounds++) {
        const id = `n${(seed * 997 + n * 31) % 3000}`;
        const pointer = { ...kind, id };
        const now = await state.get(pointer).catch(() => undefined);
        if (now === undefined) await state.create(thing(id, { seed, n })).catch(() => {});
        else if (n % 3 === 0) await state.destroy(pointer).catch(() => {});
        else await state.update({ metadata: now.metadata, spec: { seed, n } }).catch(() => {});
      }
    };
    const writers = [1, 2, 3, 4].map(writer);
    const { revision, resources } = await state.admin.backup(copy);
    const after = rounds;
    done = true;
    await Promise.all(writers);
    await expect.poll(() => events.at(-1)?.revision).toBe(state.revision);
    aborter.abort();
    await watching;
    expect(after).toBeGreaterThan(10);
    const folded = new Map<string, Resource>();
    for (const event of events) {
      if (event.type !== 'created' && event.type !== 'updated' && event.type !== 'destroyed') continue;
      const at = event.revision ?? 0;
      if (at > revision && event.type !== 'created') break;
      if (at > revision) continue;
      if (event.type === 'destroyed') folded.delete(event.resource.metadata.id);
      else folded.set(event.resource.metadata.id, event.resource);
    }
    await using again = await openSqliteState({ file: copy, environment });
    const { items } = await again.list(kind);
    expect(items).toHaveLength(resources);
    const text = (all: Iterable<Resource>) => [...all].map(({ metadata, spec }) => JSON.stringify([metadata, spec])).sort();
    expect(text(items)).toEqual(text(folded.values()));
  });

  test('of a file that nobody has open changes nothing of it', async () => {
    {
      await using state = await open();
      await state.create(thing('a'));
    }
    const before = readFileSync(file);
    expect(await admin().backup(join(folder, 'copy.db'))).toMatchObject({ resources: 1, revision: 1 });
    expect(readFileSync(file)).toEqual(before);
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'state.db']);
  });

  test('never overwrites unless told to, and never what is in use', async () => {
    await using state = await open();
    await state.create(thing('a'));
    const copy = join(folder, 'copy.db');
    writeFileSync(copy, 'mine');
    await expect(state.admin.backup(copy)).rejects.toMatchObject({ code: 'Conflict', reason: 'alreadyExists' });
    expect(readFileSync(copy, 'utf8')).toBe('mine');
    // Only backups are replaced: a server writes as the user who runs it, for whoever may ask.
    await expect(state.admin.backup(copy, { force: true })).rejects.toMatchObject({ code: 'Invalid' });
    expect(readFileSync(copy, 'utf8')).toBe('mine');
    rmSync(copy);
    await state.admin.backup(copy);
    await state.admin.backup(copy, { force: true });
    expect((await storeFileAdmin({ file: copy, environment }).check()).resources).toBe(1);
    for (const own of [file, `${file}-wal`, `${file}-holder`])
      await expect(state.admin.backup(own, { force: true })).rejects.toMatchObject({ code: 'Invalid' });
    await expect(state.admin.backup(folder, { force: true })).rejects.toMatchObject({ code: 'Invalid' });
    await expect(state.admin.backup(join(folder, 'none', 'copy.db'))).rejects.toMatchObject({ code: 'NotFound' });
    await using _copied = await openSqliteState({ file: copy, environment });
    await expect(state.admin.backup(copy, { force: true })).rejects.toMatchObject({ code: 'Locked' });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('of a damaged store is refused; given up, it leaves nothing behind', async () => {
    {
      await using state = await open();
      for (let n = 1; n <= 600; n++) await state.create(thing(`n${n}`));
    }
    const copy = join(folder, 'copy.db');
    const aborter = new AbortController();
    await expect(admin().backup(copy, { signal: aborter.signal, onProgress: () => aborter.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    );
    damage(file, (database) => database.exec("DELETE FROM resources WHERE id = 'n4'"));
    await expect(admin().backup(copy)).rejects.toMatchObject({ code: 'Corrupt' });
    expect(readdirSync(folder)).toEqual(['state.db']);
  });

  test('a store that is closed meanwhile ends it', async () => {
    const state = await open();
    for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 100 }, (_, m) => state.create(thing(`n${n * 100 + m}`))));
    let closing: Promise<void> | undefined;
    const backup = state.admin.backup(join(folder, 'copy.db'), {
      onProgress: () => {
        closing ??= Promise.resolve(state[Symbol.asyncDispose]());
      },
    });
    await expect(backup).rejects.toMatchObject({ name: 'SteadystateError' });
    await closing;
    expect(readdirSync(folder)).toEqual(['state.db']);
  });

  test('the lock of the store outlives it', async () => {
    await using state = await open();
    await state.create(thing('a'));
    await state.admin.backup(join(folder, 'copy.db'));
    await state.admin.check();
    await collect(state.admin.export());
    const { execFileSync } = await import('node:child_process');
    const look = `import { storeFileAdmin } from ${JSON.stringify(new URL('../../../dist/backends/sqlite/index.js', import.meta.url).href)};
      import { nodeEnvironment } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)};
      await storeFileAdmin({ file: ${JSON.stringify(file)}, environment: nodeEnvironment() }).check().catch((error) => console.log(error.code));`;
    expect(execFileSync(process.execPath, ['--input-type=module', '-e', look], { encoding: 'utf8' })).toBe('Locked\n');
  });
});

describe('compact', () => {
  test('drops old events and gives room back, watched while it happens', async () => {
    await using state = await open();
    for (let n = 0; n < 10; n++)
      await Promise.all(Array.from({ length: 100 }, (_, m) => state.create(thing(`n${n * 100 + m}`, { pad: 'x'.repeat(1000) }))));
    const [early] = await collectEvents(state, { tailEvents: 1000 }, 1);
    for (let n = 100; n < 1000; n++) await state.destroy({ ...kind, id: `n${n}` });
    const aborter = new AbortController();
    const seen: number[] = [];
    const watch = await state.watchKind(kind, { signal: aborter.signal, strict: true });
    const watching = (async () => {
      for await (const event of watch) {
        if (event.type === 'errored') throw event.error;
        seen.push(event.revision ?? 0);
      }
    })();
    let writing = true;
    const writer = (async () => {
      for (let n = 0; writing; n++) await state.create(thing(`w${n}`));
    })();
    const from = state.revision;
    const done = await state.admin.compact({ keep: 50 });
    writing = false;
    await writer;
    await expect.poll(() => seen.at(-1)).toBe(state.revision);
    aborter.abort();
    await watching;
    expect(seen).toEqual(Array.from({ length: seen.length }, (_, index) => (seen[0] as number) + index));
    expect(seen[0]).toBeLessThanOrEqual(from + 5);
    expect(done.forgotten).toBeGreaterThan(1800);
    expect(done.bytesAfter).toBeLessThan(done.bytesBefore / 3);
    expect(await state.admin.check()).toMatchObject({ findings: [], floor: done.floor });
    expect(statSync(file).size).toBe(done.bytesAfter);
    // What has gone is said, never silent; and what stayed resumes.
    await expect(state.watchKind(kind, { startFromBookmark: early?.bookmark as Bytes })).rejects.toMatchObject({
      code: 'InvalidBookmark',
      message: /expired/,
    });
    expect(await collectEvents(state, { tailEvents: 3 }, 3)).toHaveLength(3);
  });

  test('by age, and both together: an event goes only if both let it go', async () => {
    let now = 1_000_000;
    const clocked = { ...environment, now: () => now };
    await using state = await openSqliteState({ file, environment: clocked });
    for (let n = 1; n <= 1000; n++) {
      now += 1000;
      await state.create(thing(`n${n}`));
    }
    expect(await state.admin.compact({ olderThanMs: 600_000, keep: 700 })).toMatchObject({ floor: 300, forgotten: 300 });
    expect(await state.admin.compact({ olderThanMs: 600_500, keep: 10 })).toMatchObject({ floor: 399 });
    expect(await state.admin.compact({ olderThanMs: 10_000_000 })).toMatchObject({ floor: 399, forgotten: 0 });
    expect(await state.admin.compact()).toMatchObject({ forgotten: 0 });
    expect(await state.admin.compact({ keep: 0 })).toMatchObject({ floor: 1000, revision: 1000 });
    expect(await state.admin.check()).toMatchObject({ findings: [], events: 0, resources: 1000 });
    await expect(state.admin.compact({ keep: -1 })).rejects.toMatchObject({ code: 'Invalid' });
  });

  test('of a file that nobody has open; the floor and the revision outlive it', async () => {
    {
      await using state = await open();
      for (let n = 1; n <= 100; n++) await state.create(thing(`n${n}`));
    }
    expect(await admin().compact({ keep: 0 })).toMatchObject({ floor: 100, revision: 100 });
    expect(readdirSync(folder)).toEqual(['state.db']);
    await using state = await open();
    expect((await state.create(thing('next'))).metadata.version).toBe('101');
  });

  test('goes on without room', async () => {
    await using state = await open({ maxPages: 64 });
    for (let n = 0; ; n++) {
      const failed = await state.create(thing(`n${n}`, 'x'.repeat(1500))).catch((error) => error);
      if (failed.code === 'NoSpace') break;
    }
    for (let n = 0; n < 5; n++) await state.update(await state.get({ ...kind, id: `n${n}` })).catch(() => {});
    const { forgotten } = await state.admin.compact({ keep: 0 });
    expect(forgotten).toBeGreaterThan(0);
    expect((await state.admin.check()).findings).toEqual([]);
  });
});

describe('export', () => {
  test('gives everything at one revision, in the order of creation, beside writers', async () => {
    await using state = await open();
    for (let n = 0; n < 15; n++) await Promise.all(Array.from({ length: 100 }, (_, m) => state.create(thing(`n${n * 100 + m}`))));
    await state.update({ ...(await state.get({ ...kind, id: 'n3' })), spec: 'changed' });
    const exported: Resource[] = [];
    for await (const resource of state.admin.export()) {
      if (exported.push(resource) === 1) {
        await state.destroy({ ...kind, id: 'n1000' });
        await state.create(thing('late'));
      }
    }
    expect(exported.map(({ metadata }) => Number(metadata.uid))).toEqual(Array.from({ length: 1500 }, (_, index) => index + 1));
    expect(exported[3]).toMatchObject({ metadata: { id: 'n3', version: '1501' }, spec: 'changed' });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('ends early without leaving anything behind', async () => {
    {
      await using state = await open();
      for (let n = 0; n < 700; n++) await state.create(thing(`n${n}`));
      for await (const _resource of state.admin.export()) break;
      expect(readdirSync(folder).sort()).toEqual(['state.db', 'state.db-holder', 'state.db-reserve', 'state.db-wal']);
    }
    for await (const _resource of admin().export()) break;
    expect(await collect(admin().export())).toHaveLength(700);
    expect(existsSync(`${file}-shm`)).toBe(false);
  });
});

async function collectEvents(state: SqliteState, options: object, count: number): Promise<StateEvent[]> {
  const events: StateEvent[] = [];
  for await (const event of await state.watchKind(kind, options)) if (events.push(event) === count) break;
  return events;
}
