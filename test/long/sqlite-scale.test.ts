import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SqliteState } from '../../src/backends/sqlite/index.ts';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';

/** Resources of the large store. */
const many = Number(process.env.STEADYSTATE_SCALE ?? 1_000_000);
const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Things.example.dev' };
const fields = (index: number) =>
  Object.fromEntries(Array.from({ length: 8 }, (_, field) => [`field${field}`, `${index}-${field}-`.padEnd(50, 'x')]));
const thing = (index: number) => ({ metadata: { ...kind, id: `thing-${index}` }, spec: fields(index) });
const megabyte = 1024 * 1024;
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-scale-'));
  file = join(folder, 'state.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

async function fill(state: SqliteState, from: number, to: number, together = 5_000): Promise<void> {
  for (let next = from; next < to; next += together)
    await Promise.all(Array.from({ length: Math.min(together, to - next) }, (_, index) => state.create(thing(next + index))));
}

/** Bytes in use, outside the heap too. */
function memory(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test(`${many} resources: the file, the memory, and the time that a read takes stay in proportion`, async () => {
  {
    await using state = await openSqliteState({ file, environment });
    await fill(state, 0, many);
    expect(statSync(`${file}-wal`).size).toBeLessThan(64 * megabyte);
    // Of a resource about 500 bytes are the user's.
    const bytes = statSync(file).size + statSync(`${file}-wal`).size;
    expect(bytes / many).toBeLessThan(900 + (100_000 / many) * 900);
  }
  const before = memory();
  await using state = await openSqliteState({ file, environment });
  expect((await state.get({ ...kind, id: `thing-${many >> 1}` })).spec).toEqual(fields(many >> 1));
  // Not decoded before somebody asks for it.
  expect((memory() - before) / many).toBeLessThan(1_300);
  const { items } = await state.list(kind);
  expect(items).toHaveLength(many);
  expect(state.revision).toBe(many);
  await state.create(thing(many));
}, 600_000);

describe('beside a backup', () => {
  test('writers go on, and the write-ahead log stays within bounds and shrinks again', async () => {
    await using state = await openSqliteState({ file, environment });
    await fill(state, 0, 100_000);
    let next = 100_000;
    let largest = 0;
    let longest = 0;
    /** Writes until it is told to stop, a large log and a long wait are noted. */
    const writeWhile = async (going: () => boolean): Promise<number> => {
      const first = next;
      const writer = async (): Promise<void> => {
        while (going()) {
          const start = performance.now();
          await state.create(thing(next++));
          longest = Math.max(longest, performance.now() - start);
          largest = Math.max(largest, statSync(`${file}-wal`).size);
        }
      };
      await Promise.all(Array.from({ length: 16 }, writer));
      return next - first;
    };
    let ended = false;
    const backup = state.admin.backup(join(folder, 'backup.db')).finally(() => {
      ended = true;
    });
    const written = await writeWhile(() => !ended);
    const { revision } = await backup;
    expect(written).toBeGreaterThan(100);
    // It is the store at one moment of that time.
    expect(revision).toBeLessThanOrEqual(state.revision);
    expect(longest).toBeLessThan(5_000);
    expect(largest).toBeLessThan(64 * megabyte);
    await using copy = await openSqliteState({ file: join(folder, 'backup.db'), environment });
    expect((await copy.list(kind)).items).toHaveLength(revision);
    await fill(state, next, next + 20_000, 500);
    expect(statSync(`${file}-wal`).size).toBeLessThan(20 * megabyte);
  });
});

test('a watcher that never reads delays no writer, and a store with one closes', async () => {
  const rate = async (state: SqliteState, from: number): Promise<number> => {
    const start = performance.now();
    await fill(state, from, from + 20_000, 64);
    return performance.now() - start;
  };
  await using state = await openSqliteState({ file, environment, historySize: 100, pendingLimit: 1_000 });
  await rate(state, 0);
  const alone = await rate(state, 20_000);
  const stalled = await Promise.all(Array.from({ length: 20 }, () => state.watchKind(kind, { bootstrapContents: true })));
  const beside = await rate(state, 40_000);
  expect(beside).toBeLessThan(alone * 5 + 2_000);
  for (const watch of stalled) await watch[Symbol.asyncDispose]();
});
