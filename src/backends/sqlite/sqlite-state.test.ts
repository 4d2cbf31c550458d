import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { inFreshFolder, kind, thing } from '../../../test/sqlite-world.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { Bytes } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import type { SqliteState } from './sqlite-state.ts';
import { openSqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
let folder: string;
let file: string;

inFreshFolder(environment, (...given) => {
  [folder, file] = given;
});

const open = (more: Partial<Parameters<typeof openSqliteState>[0]> = {}): Promise<SqliteState> =>
  openSqliteState({ file, environment, ...more });

/** A program of its own that opens the store as `state`. */
const opener = (then: string): string => `
  import { nodeEnvironment } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)};
  import { openSqliteState } from ${JSON.stringify(new URL('../../../dist/backends/sqlite/index.js', import.meta.url).href)};
  const state = await openSqliteState({ file: ${JSON.stringify(file)}, environment: nodeEnvironment() });
  ${then}
`;

async function take(state: SqliteState, count: number, options = {}): Promise<StateEvent[]> {
  const events: StateEvent[] = [];
  for await (const event of await state.watchKind(kind, options)) {
    events.push(event);
    if (events.length >= count) break;
  }
  return events;
}

describe('a store in a file', () => {
  test('keeps every kind of value, and its own identity, over a restart', async () => {
    const spec = {
      text: 'ä\u0000',
      number: -1.5,
      big: 2n ** 70n,
      bytes: Bytes.from(new Uint8Array([0, 255])),
      $tag: { $integer: '1' },
      list: [null, true, {}],
    };
    let storeId: string;
    {
      await using state = await open();
      storeId = state.storeId;
      await state.create({ metadata: { ...kind, id: 'a', labels: { l: '1' }, finalizers: ['f'] }, spec });
    }
    await using state = await open();
    expect(state.storeId).toBe(storeId);
    const read = await state.get({ ...kind, id: 'a' });
    expect(read.metadata).toMatchObject({ version: '1', uid: '1', labels: { l: '1' }, finalizers: ['f'] });
    expect(read.spec).toEqual(spec);
    expect(Object.isFrozen((read.spec as { list: unknown[] }).list)).toBe(true);
  });

  test('never uses a revision twice, and resumes bookmarks from before a restart', async () => {
    let bookmark: Bookmark | undefined;
    {
      await using state = await open();
      await state.create(thing('a'));
      [{ bookmark }] = (await take(state, 1, { bootstrapBookmark: true })) as [StateEvent];
      await state.create(thing('b'));
      await state.destroy({ ...kind, id: 'b' });
    }
    await using state = await open();
    const created = await state.create(thing('c'));
    expect(created.metadata.version).toBe('4');
    const events = await take(state, 3, { startFromBookmark: bookmark });
    expect(events.map((event) => [event.type, event.revision])).toEqual([
      ['created', 2],
      ['destroyed', 3],
      ['created', 4],
    ]);
    expect(await take(state, 2, { tailEvents: 2 })).toMatchObject([{ revision: 3 }, { revision: 4 }]);
  });

  test('an expired bookmark is an error, not silence', async () => {
    let bookmark: Bookmark | undefined;
    {
      await using state = await open({ historyLimit: 10, historySize: 4 });
      [{ bookmark }] = (await take(state, 1, { bootstrapBookmark: true })) as [StateEvent];
      for (let index = 0; index < 30; index++) await state.create(thing(`n${index}`));
    }
    await using state = await open({ historyLimit: 10 });
    await expect(state.watchKind(kind, { startFromBookmark: bookmark as Bookmark })).rejects.toMatchObject({ code: 'InvalidBookmark' });
  });

  test('many writers share syncs, and a loser learns the fate of what it lost against', async () => {
    await using state = await open();
    const outcomes = await Promise.allSettled(Array.from({ length: 50 }, (_, index) => state.create(thing(`same-${index % 25}`))));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(25);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'Conflict', reason: 'alreadyExists' });
    expect(state.revision).toBe(25);
  });

  test('readers see a write only once it is durable', async () => {
    await using state = await open();
    const writing = state.create(thing('a'));
    await expect(state.get({ ...kind, id: 'a' })).rejects.toMatchObject({ code: 'NotFound' });
    await writing;
    expect((await state.get({ ...kind, id: 'a' })).metadata.id).toBe('a');
  });

  test('a destroy and a create of one id in one batch leave the new incarnation', async () => {
    await using state = await open();
    await state.create(thing('a', 1));
    const [, created] = await Promise.all([state.destroy({ ...kind, id: 'a' }), state.create(thing('a', 2))]);
    expect(created.metadata.uid).toBe('3');
    expect((await state.get({ ...kind, id: 'a' })).spec).toBe(2);
    expect((await state.list(kind)).items).toHaveLength(1);
  });

  test('the second opener is told who holds the file', async () => {
    await using _state = await open();
    await expect(open()).rejects.toMatchObject({ code: 'Locked', holder: expect.stringContaining(`process ${process.pid}`) });
  });

  test('a lock names its holder, and dies with it', async () => {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', opener('process.stdout.write("open\\n"); setInterval(() => {}, 1000);')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await expect(open()).rejects.toMatchObject({
      code: 'Locked',
      holder: expect.stringMatching(new RegExp(`^process ${child.pid} on .* since 20`)),
      message: expect.stringContaining(`in use by process ${child.pid}`),
    });
    child.kill('SIGKILL');
    await exited;
    await using state = await open();
    expect((await state.create(thing('mine'))).metadata.version).toBe('1');
  });

  test('watchers of the time before a restart and after it see one history', async () => {
    {
      await using state = await open();
      await state.create(thing('a', 1));
      await state.update({ ...thing('a', 2), metadata: { ...kind, id: 'a', version: '1' } });
      await state.create({ metadata: { namespace: 'other', type: kind.type, id: 'x' }, spec: 1 });
      await state.destroy({ ...kind, id: 'a' });
      await state.create(thing('a', 3));
    }
    await using state = await open();
    await state.update({ ...thing('a', 4), metadata: { ...kind, id: 'a', version: '5' } });
    const events = await take(state, 5, { tailEvents: 100 });
    expect(
      events.map((event) => [event.type, event.revision, 'resource' in event && event.resource.spec, 'old' in event && event.old?.spec]),
    ).toEqual([
      ['created', 1, 1, false],
      ['updated', 2, 2, 1],
      ['destroyed', 4, 2, false],
      ['created', 5, 3, false],
      ['updated', 6, 4, 3],
    ]);
  });

  test('a watcher that lags is not told twice when an older history is read for another one meanwhile', async () => {
    await using state = await open({ historySize: 4 });
    const versions = new Map<string, string>();
    const write = async (id: string, spec: number): Promise<void> => {
      const version = versions.get(id);
      const written = await (version === undefined
        ? state.create(thing(id, spec))
        : state.update({ metadata: { ...kind, id, version }, spec }));
      versions.set(id, written.metadata.version);
    };
    const [start] = await take(state, 1, { bootstrapBookmark: true });
    const stalled = await state.watchKind(kind);
    for (let round = 0; round < 30; round++) await write(`n${round % 3}`, round);
    const later = await state.watchKind(kind);
    for (let round = 30; round < 50; round++) await write(`n${round % 5}`, round);
    // From the disk: the log goes back to the beginning now, and is cut again by the next writes.
    const resumed = await state.watchKind(kind, { startFromBookmark: start?.bookmark as NonNullable<StateEvent['bookmark']> });
    for (let round = 50; round < 80; round++) await write(`n${round % 5}`, round);
    const last = String(Math.max(...[...versions.values()].map(Number)));
    for (const [watch, known] of [
      [stalled, new Map<string, unknown>()],
      [later, new Map<string, unknown>([0, 1, 2].map((id) => [`n${id}`, 27 + id]))],
      [resumed, new Map<string, unknown>()],
    ] as const) {
      for await (const event of watch) {
        if (event.type !== 'created' && event.type !== 'updated') throw new Error(`unexpected ${event.type}`);
        const { id, version } = event.resource.metadata;
        expect(event.type).toBe(known.has(id) ? 'updated' : 'created');
        if (event.type === 'updated') expect(event.old?.spec).toBe(known.get(id));
        known.set(id, event.resource.spec);
        if (version === last) break;
      }
      expect(Object.fromEntries(known)).toEqual({ n0: 75, n1: 76, n2: 77, n3: 78, n4: 79 });
    }
  });

  test('without room destroying goes on, and creating again after it', async () => {
    await using state = await open({ maxPages: 40 });
    const ids: string[] = [];
    const fill = async (): Promise<void> => {
      for (;;) {
        const { metadata } = await state.create(thing(`n${ids.length}`, 'x'.repeat(3000)));
        ids.push(metadata.id);
      }
    };
    await expect(fill()).rejects.toMatchObject({ code: 'NoSpace', pointer: { ...kind, id: expect.stringMatching(/^n/) } });
    expect(ids.length).toBeGreaterThan(10);
    for (const id of ids) await state.destroy({ ...kind, id });
    expect((await state.list(kind)).items).toEqual([]);
    expect((await state.create(thing('again', 'x'.repeat(3000)))).metadata.id).toBe('again');
  });

  test('a full disk is told as such; reading goes on, and writing again once there is room', async () => {
    await using state = await open({ maxPages: 24 });
    const big = 'x'.repeat(4000);
    const failed = await (async () => {
      for (let index = 0; index < 100; index++) {
        try {
          await state.create(thing(`n${index}`, big));
        } catch (error) {
          return { index, error };
        }
      }
      return undefined;
    })();
    expect(failed?.error).toMatchObject({ code: 'NoSpace' });
    expect((await state.list(kind)).items).toHaveLength(failed?.index as number);
    await expect(state.get({ ...kind, id: `n${failed?.index}` })).rejects.toMatchObject({ code: 'NotFound' });
    expect((await state.create(thing('small', 1))).metadata.id).toBe('small');
  });

  test('a damaged record is refused, never served', async () => {
    {
      await using state = await open();
      await state.create(thing('a', 'needle-in-the-file'));
    }
    const bytes = readFileSync(file);
    const place = bytes.indexOf('needle-in-the-file');
    bytes[place] = 0x4e;
    writeFileSync(file, bytes);
    await expect(open()).rejects.toMatchObject({ code: 'Corrupt' });
  });

  test('what is no store, or of a newer format, is refused', async () => {
    writeFileSync(file, 'not a database, but long enough to be looked at as one'.repeat(50));
    await expect(open()).rejects.toMatchObject({ code: 'Corrupt' });
    rmSync(file);
    await expect(openSqliteState({ file: join(folder, 'no', 'such', 'folder.db'), environment })).rejects.toMatchObject({
      code: 'Unavailable',
    });
  });

  test('a file that was replaced under the store is noticed before anything is acknowledged', async () => {
    await using state = await open();
    await state.create(thing('a'));
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
    await expect(state.create(thing('b'))).rejects.toMatchObject({ code: 'Corrupt' });
    await expect(state.create(thing('c'))).rejects.toMatchObject({ code: 'Corrupt' });
    await expect(state.get({ ...kind, id: 'a' })).rejects.toMatchObject({ code: 'Corrupt' });
  });

  test('nothing acknowledged is lost when the writer is killed', async () => {
    const program = opener(`
      const writer = async (name) => {
        for (let n = 0; ; n++) {
          const { metadata } = await state.create({ metadata: { namespace: 'default', type: 'Things.example.dev', id: name + '-' + process.pid + '-' + n }, spec: { n } });
          process.stdout.write(metadata.id + ' ' + metadata.version + '\\n');
        }
      };
      await Promise.all(['a', 'b', 'c', 'd'].map(writer));
    `);
    const acknowledged = new Map<string, string>();
    const versions = new Set<string>();
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = new Promise((resolve) => child.once('exit', resolve));
      let count = 0;
      for await (const line of createInterface({ input: child.stdout })) {
        const [id = '', version = ''] = line.split(' ');
        acknowledged.set(id, version);
        expect(versions.has(version)).toBe(false);
        versions.add(version);
        if (++count === 40 + round * 17) child.kill('SIGKILL');
      }
      await exited;
    }
    expect(acknowledged.size).toBeGreaterThanOrEqual(40 + 57 + 74);
    await using state = await open();
    for (const [id, version] of acknowledged) expect((await state.get({ ...kind, id })).metadata.version).toBe(version);
    expect(statSync(file).size).toBeGreaterThan(0);
  });

  test('helpers work on it', async () => {
    await using core = await open();
    const state = wrapCore(core, { environment });
    await state.create(thing('a'));
    await state.addFinalizer({ ...kind, id: 'a' }, 'f');
    const gone = state.teardownAndDestroy({ ...kind, id: 'a' });
    await state.watchFor({ ...kind, id: 'a' }, { phases: ['tearingDown'] });
    await state.removeFinalizer({ ...kind, id: 'a' }, 'f');
    await gone;
  });
});
