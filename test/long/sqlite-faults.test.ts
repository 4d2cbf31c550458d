import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { Resource } from '../../src/resource/index.ts';
import type { Call, Outcome } from './store-program.ts';
import { kind, Ledger, StoreProgram, thing } from './store-program.ts';

const environment = nodeEnvironment();
let folder: string;

beforeAll(() => {
  if (spawnSync('strace', ['-V']).status !== 0) throw new Error('these tests need the program strace: install the package strace');
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-faults-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

interface Fault {
  /** System calls, with commas. */
  readonly calls: string;
  readonly error: string;
  /** The how manieth of a thread; `5+`: that one and all after it. */
  readonly when: string;
  /** Whether the program closes its store, or is killed, so that the fault met what came before. */
  readonly ending: 'close' | 'kill';
}

interface Round {
  /** Whether the fault met the store itself: the notes beside it are a help only, and may fail. */
  readonly fired: boolean;
  /** What the first call that failed came to. */
  readonly failure: string | undefined;
}

/** Groups of writes. The large ones take the write-ahead log over its limits, so that it is folded in, and then cut. */
function plan(large: boolean): readonly (readonly [id: string, Call])[][] {
  const spec = { long: large ? 900_000 : 10 };
  const made = (id: string): readonly [string, Call] => [id, ['create', thing(id, spec)]];
  const groups = Array.from({ length: 3 }, (_, group) => [made(`g${group}`)]);
  groups.push(Array.from({ length: large ? 20 : 3 }, (_, index) => made(`many-${index}`)));
  groups.push([['g0', ['destroy', { ...kind, id: 'g0' }]], made('beside')]);
  groups.push(...Array.from({ length: 3 }, (_, group) => [made(`late-${group}`)]));
  return groups;
}

let attempt = 0;

/** One program with one fault. Throws when the store did not do right. */
async function meet({ calls, error, when, ending }: Fault, large: boolean): Promise<Round> {
  const name = join(folder, `attempt-${attempt++}`);
  const file = `${name}.db`;
  const trace = `${name}.trace`;
  const inject = `inject=${calls}:error=${error}:when=${when}`;
  const under = ['strace', '-f', '--seccomp-bpf', '-qq', '-y', '-s', '0', '-o', trace, '-e', `trace=${calls}`, '-e', inject];
  const where = `${calls} ${error} ${when}`;
  const ledger = new Ledger();
  const unknown = new Set<string>();
  let failure: string | undefined;
  const expectTyped = ({ code, message }: Outcome): void => {
    if (code === undefined || !['Unavailable', 'Ambiguous', 'NoSpace'].includes(code)) throw new Error(`${where}: ${code} ${message}`);
    failure ??= code;
  };
  const note = (id: string, outcome: Outcome): void => {
    // What was never made cannot be destroyed.
    if (failure !== undefined && outcome.code === 'NotFound') return;
    if (outcome.code !== undefined) return expectTyped(outcome);
    // Where there was no room it may go on; after any other failure nothing is acknowledged.
    if (failure !== undefined && failure !== 'NoSpace') throw new Error(`${where}: ${id} was acknowledged after a failed write`);
    ledger.note(id, outcome.value as Resource | undefined);
  };
  const { program, opened } = await StoreProgram.start({ file, under });
  await using _program = program;
  if (opened.code === undefined) {
    for (const group of plan(large)) {
      const outcomes = await program.together(group.map(([, call]) => call));
      for (const [index, [id]] of group.entries()) {
        const outcome = outcomes[index] as Outcome;
        if (outcome.code === 'Ambiguous') unknown.add(id);
        note(id, outcome);
      }
    }
    const list = await program.call('list', kind);
    if (list.code !== undefined) throw new Error(`${where}: reading must go on from memory, found ${list.code} ${list.message}`);
    // Nobody saw what failed.
    expect(ledger.differences((list.value as { readonly items: readonly Resource[] }).items), where).toEqual([]);
    // Where only one call failed the same program goes on once it has opened the store again.
    if (ending === 'kill' && failure !== undefined && !when.endsWith('+')) {
      expect((await program.call('reopen')).code, where).toBeUndefined();
      const { value } = await program.call('list', kind);
      expect(ledger.differences((value as { readonly items: readonly Resource[] }).items, unknown), where).toEqual([]);
      const again = await program.call('create', thing('again', 1));
      expect(again.code, where).toBeUndefined();
      ledger.note('again', again.value as Resource);
    }
    if (ending === 'close') expect((await program.end())?.code, where).toBeUndefined();
    else await program.kill();
  } else expectTyped(opened);
  await using state = await openSqliteState({ file, environment });
  expect(ledger.differences((await state.list(kind)).items, unknown), where).toEqual([]);
  const after = await state.create(thing('after', 'it goes on'));
  expect(Number(after.metadata.version)).toBe(state.revision);
  const injected = readFileSync(trace, 'utf8')
    .split('\n')
    .filter((line) => line.includes('(INJECTED)'));
  return { fired: injected.some((line) => line.includes(file) && !line.includes('-holder')), failure };
}

interface Seen {
  /** How often what the first failed call came to, while the store was open. */
  readonly open: Readonly<Record<string, number>>;
  /** How many calls of a close met the fault. */
  readonly closing: number;
}

/** Every call in turn, to the end of the program. */
async function everyCall(
  fault: Omit<Fault, 'when' | 'ending'>,
  options: { readonly large: boolean; readonly all?: boolean },
): Promise<Seen> {
  const open: Record<string, number> = {};
  let closing = 0;
  let ending: Fault['ending'] = 'kill';
  let count = 1;
  // Calls on the notes, and of other threads, are not the store's: some that miss are no end yet.
  for (let missed = 0; missed < 4; count++) {
    const { fired, failure = 'unharmed' } = await meet({ ...fault, when: `${count}${options.all ? '+' : ''}`, ending }, options.large);
    missed = fired ? 0 : missed + 1;
    if (fired && ending === 'close') closing++;
    else if (fired) open[failure] = (open[failure] ?? 0) + 1;
    if (missed === 4 && ending === 'kill') {
      ending = 'close';
      count -= missed;
      missed = 0;
    }
  }
  return { open, closing };
}

describe.runIf(process.platform === 'linux')('a disk that fails', () => {
  test.each([false, true])('a sync that fails stops the store, at every sync (and all after it: %s)', async (all) => {
    const { open, closing } = await everyCall({ calls: 'fsync,fdatasync', error: 'EIO' }, { large: true, all });
    expect(open).toMatchObject({ Unavailable: expect.any(Number), Ambiguous: expect.any(Number) });
    expect(open.Ambiguous).toBeGreaterThan(4);
    expect(closing).toBeGreaterThan(1);
  });

  test('a write that fails stops the store, at every write', async () => {
    const { open, closing } = await everyCall({ calls: 'pwrite64', error: 'EIO' }, { large: false });
    expect(open.Ambiguous).toBeGreaterThan(20);
    expect(closing).toBeGreaterThan(4);
  });

  test('a write without room leaves the store as it was, at every write', async () => {
    const { open, closing } = await everyCall({ calls: 'pwrite64', error: 'ENOSPC' }, { large: false });
    // Of a destroy nothing is seen: it makes itself room, and tries again.
    expect(Object.keys(open).filter((code) => code !== 'unharmed')).toEqual(['NoSpace']);
    expect(open.NoSpace).toBeGreaterThan(20);
    expect(closing).toBeGreaterThan(4);
  });

  test.each(['ftruncate', 'unlink'])('a failed %s loses nothing', async (calls) => {
    const { open, closing } = await everyCall({ calls, error: 'EIO' }, { large: true });
    expect(Object.keys(open).length + closing).toBeGreaterThan(0);
  });

  test('a sync that fails while the log is folded in, which no write waits for, is told at once', async () => {
    for (let when = 1; ; when++) {
      const file = join(folder, `folding-${when}.db`);
      const trace = `${file}.trace`;
      await using made = await openSqliteState({ file, environment });
      await made.create(thing('first', 1));
      await made[Symbol.asyncDispose]();
      // Of the file itself: beside commits, whose syncs are the log's.
      const inject = `inject=fsync,fdatasync:error=EIO:when=${when}`;
      const under = ['strace', '-f', '-qq', '-P', file, '-o', trace, '-e', 'trace=fsync,fdatasync', '-e', inject];
      const { program, opened } = await StoreProgram.start({ file, under });
      await using _program = program;
      if (opened.code !== undefined) continue;
      const spec = { long: 900_000 };
      const created = await program.together(Array.from({ length: 12 }, (_, index) => ['create', thing(`large-${index}`, spec)]));
      expect(created.map(({ code }) => code)).toEqual(Array.from({ length: 12 }, () => undefined));
      // Settles when the store stops: nothing else is written.
      const waited = await program.call('waitForRevision', 1_000_000);
      expect(waited).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('check the disk') });
      expect(readFileSync(trace, 'utf8')).toContain('(INJECTED)');
      expect(await program.call('create', thing('late', 1))).toMatchObject({ code: 'Unavailable' });
      expect((await program.call('get', { ...kind, id: 'large-11' })).code).toBeUndefined();
      await program.kill();
      await using state = await openSqliteState({ file, environment });
      expect((await state.list(kind)).items).toHaveLength(13);
      return;
    }
  });

  test('a kill at any write of folding the log in loses nothing', async () => {
    let killed = 0;
    for (const when of [1, 2, 3, 5, 8, 50, 500, 1500, 2000]) {
      const file = join(folder, `killed-${when}.db`);
      {
        await using made = await openSqliteState({ file, environment });
        await made.create(thing('first', 1));
      }
      // The file itself is written when it is opened, a page or two, and when the log is folded in.
      const under = ['strace', '-f', '-qq', '-P', file, '-o', `${file}.trace`, '-e', 'trace=pwrite64'];
      under.push('-e', `inject=pwrite64:signal=SIGKILL:when=${when}`);
      const { program, opened } = await StoreProgram.start({ file, under }).catch(() => ({ program: undefined, opened: undefined }));
      const ledger = new Ledger();
      if (program !== undefined && opened !== undefined) {
        await using _program = program;
        const ids = Array.from({ length: 12 }, (_, index) => `large-${index}`);
        const made = await program.together(ids.map((id) => ['create', thing(id, { long: 900_000 })])).catch(() => []);
        for (const [index, { value }] of made.entries()) ledger.note(ids[index] as string, value as Resource);
        // Another group meets the kill, if that was not before.
        await program.call('create', thing('after', 1)).catch(() => killed++);
        await program.kill();
      }
      await using state = await openSqliteState({ file, environment });
      const { items } = await state.list(kind);
      const unknown = new Set([...(ledger.size === 0 ? items.map(({ metadata }) => metadata.id) : []), 'first', 'after']);
      expect(ledger.differences(items, unknown), `at write ${when}`).toEqual([]);
      expect(items.some(({ metadata }) => metadata.id === 'first')).toBe(true);
      expect((await state.admin.check()).findings).toEqual([]);
    }
    expect(killed).toBeGreaterThan(2);
  });
});
