import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Resource } from '../../src/resource/index.ts';
import { SmallDisk } from './small-disk.ts';
import type { Outcome } from './store-program.ts';
import { kind, Ledger, StoreProgram, thing } from './store-program.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'steadystate-full-'));
  file = join(folder, 'state.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A store on a small disk, and what it acknowledged. */
class World {
  readonly disk: SmallDisk;
  readonly ledger = new Ledger();
  readonly ids: string[] = [];
  program!: StoreProgram;
  #next = 0;

  constructor(disk: SmallDisk) {
    this.disk = disk;
  }

  async open(open = {}): Promise<Outcome> {
    const { program, opened } = await StoreProgram.start({ file, under: this.disk.enter, open });
    this.program = program;
    return opened;
  }

  async create(long = 3000): Promise<Outcome> {
    const id = `n${this.#next++}`;
    const outcome = await this.program.call('create', thing(id, { long }));
    if (outcome.code === undefined) {
      this.ledger.note(id, outcome.value as Resource);
      this.ids.push(id);
    }
    return outcome;
  }

  async destroy(): Promise<Outcome> {
    const id = this.ids.pop() as string;
    const outcome = await this.program.call('destroy', { ...kind, id });
    if (outcome.code === undefined) this.ledger.note(id, undefined);
    return outcome;
  }

  async fill(): Promise<Outcome> {
    for (;;) {
      const outcome = await this.create();
      if (outcome.code !== undefined) return outcome;
    }
  }

  async check(): Promise<void> {
    const { value, code } = await this.program.call('list', kind);
    expect(code).toBeUndefined();
    expect(this.ledger.differences((value as { readonly items: readonly Resource[] }).items)).toEqual([]);
  }
}

describe.runIf(process.platform === 'linux')('a disk of 1 MiB', () => {
  test('that the store itself fills: reading and destroying go on to the last one, and creating after it', async () => {
    await using disk = await SmallDisk.mount(folder, 1024);
    const world = new World(disk);
    expect(await world.open()).toMatchObject({ value: { revision: 0 } });
    await using _program = world.program;
    for (let round = 0; round < 3; round++) {
      expect(await world.fill()).toMatchObject({ code: 'NoSpace', message: expect.stringContaining(file) });
      // Later rounds share the disk with the events of the former ones.
      expect(world.ids.length).toBeGreaterThan(round === 0 ? 40 : 5);
      await world.check();
      const count = world.ids.length;
      while (world.ids.length > count / 2) expect(await world.destroy()).toEqual({});
      await world.check();
      expect(await world.create()).toMatchObject({ value: {} });
      while (world.ids.length > 0) expect(await world.destroy()).toEqual({});
      await world.check();
    }
  });

  test.each([0, 4, 16, 64])(
    'that somebody else fills but for %i KiB: destroying goes on, and creating once there is room',
    async (left) => {
      await using disk = await SmallDisk.mount(folder, 1024);
      const world = new World(disk);
      await world.open();
      await using _program = world.program;
      for (let index = 0; index < 30; index++) expect(await world.create()).toMatchObject({ value: {} });
      disk.occupy(left);
      expect(await world.fill()).toMatchObject({ code: 'NoSpace' });
      await world.check();
      for (let index = 0; index < 10; index++) expect(await world.destroy()).toEqual({});
      await world.check();
      disk.release();
      expect(await world.create()).toMatchObject({ value: {} });
      await world.check();
      expect(await world.program.end()).toEqual({});
      await world.open();
      await using _again = world.program;
      await world.check();
    },
  );

  test('a store that was killed there opens again without any room, and lets its resources be destroyed', async () => {
    await using disk = await SmallDisk.mount(folder, 1024);
    const world = new World(disk);
    await world.open();
    await using _program = world.program;
    for (let index = 0; index < 30; index++) await world.create();
    disk.occupy(0);
    await world.fill();
    await world.program.kill();
    disk.occupy(0);
    expect(disk.freeKibibytes()).toBe(0);
    expect(await world.open()).toMatchObject({ value: { revision: expect.any(Number) } });
    await using _again = world.program;
    await world.check();
    while (world.ids.length > 0) expect(await world.destroy()).toEqual({});
    await world.check();
    disk.release();
    expect(await world.create()).toMatchObject({ value: {} });
    await world.check();
  });

  test('a store that was closed is not opened without any room, and says so; with 64 KiB it is as it was', async () => {
    await using disk = await SmallDisk.mount(folder, 1024);
    const world = new World(disk);
    await world.open();
    await using _program = world.program;
    for (let index = 0; index < 30; index++) await world.create();
    expect(await world.program.end()).toEqual({});
    disk.occupy(0);
    expect(await world.open()).toMatchObject({ code: 'NoSpace', message: expect.stringContaining(file) });
    await using _refused = world.program;
    disk.release();
    disk.occupy(64);
    expect(await world.open()).toMatchObject({ value: { revision: 30 } });
    await using _again = world.program;
    await world.check();
    while (world.ids.length > 0) expect(await world.destroy()).toEqual({});
    disk.release();
    expect(await world.create()).toMatchObject({ value: {} });
    await world.check();
  });

  test('compaction goes on, and makes room', async () => {
    await using disk = await SmallDisk.mount(folder, 1024);
    const world = new World(disk);
    await world.open();
    await using _program = world.program;
    for (let index = 0; index < 60; index++) {
      await world.create();
      if (index % 2 === 0) await world.destroy();
    }
    disk.occupy(0);
    await world.fill();
    const { value, message } = await world.program.call('admin.compact', { keep: 0 });
    expect(message).toBeUndefined();
    const { forgotten, bytesBefore, bytesAfter } = value as Record<string, number>;
    expect(forgotten).toBeGreaterThan(20);
    expect(bytesAfter).toBeLessThan(bytesBefore as number);
    await world.check();
    expect(await world.create()).toMatchObject({ value: {} });
    await world.check();
  });

  test('many writers at once: who destroys is served, who creates is refused until there is room', async () => {
    await using disk = await SmallDisk.mount(folder, 1024);
    const world = new World(disk);
    await world.open();
    await using _program = world.program;
    for (let index = 0; index < 25; index++) await world.create();
    disk.occupy(0);
    await world.fill();
    const big = Array.from({ length: 8 }, (_, index) => ['create', thing(`big${index}`, { long: 60_000 })] as const);
    const doomed = world.ids.splice(0, 8);
    const destroys = doomed.map((id) => ['destroy', { ...kind, id }] as const);
    const outcomes = await world.program.together(big.flatMap((create, index) => [create, destroys[index] as (typeof destroys)[0]]));
    for (const [index, id] of doomed.entries()) {
      expect(outcomes[index * 2]).toMatchObject({ code: 'NoSpace' });
      expect(outcomes[index * 2 + 1]).toEqual({});
      world.ledger.note(id, undefined);
    }
    await world.check();
    disk.release();
    expect(await world.create(60_000)).toMatchObject({ value: {} });
    await world.check();
  });
});
