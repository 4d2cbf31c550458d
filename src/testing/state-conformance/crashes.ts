import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import { sameValue } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import type { ClientStep } from './clients.ts';
import { ClientHistory, clientKeys } from './clients.ts';
import type { Reader } from './reader.ts';
import { idOf } from './reader.ts';
import type { Case, World } from './world.ts';
import { expectRejects } from './world.ts';

/** Clients at work, and a crash among them. */
export interface CrashRound {
  readonly clients: readonly (readonly ClientStep[])[];
  /** The crash comes after this many answers, or when all clients are done. */
  readonly after: number;
}

/** Crash after crash: what anybody has seen stays (K1 and K4), and a watcher goes on from where it was (W5). */
export async function runCrashes(world: World, rounds: readonly CrashRound[]): Promise<void> {
  const history = new ClientHistory();
  for (const [index, round] of rounds.entries()) {
    const watcher = new Watcher(await world.watchKind({ bootstrapContents: true }));
    await crashAmong(world, history, round);
    await world.crash();
    await watcher.ended;
    const newest = Math.max(0, ...history.versions.map(Number), ...watcher.revisions);
    await history.run(
      world,
      clientKeys.map((key) => ({ key, call: 'get', pause: 0 })),
    );
    const marker = `end-${index}`;
    const written = await world.create(marker);
    if (world.capabilities.globalRevision)
      assert.ok(
        Number(written.metadata.version) > newest,
        `K4: revision ${newest} was seen, and ${written.metadata.version} comes after it`,
      );
    if (world.capabilities.durableBookmarks) await goOn(world, watcher, marker);
  }
  history.expectLinearizable();
}

/** Lets clients work until the crash is due. */
async function crashAmong(world: World, history: ClientHistory, { clients, after }: CrashRound): Promise<void> {
  let crash = (): void => {};
  const crashed = new Promise<void>((resolve) => {
    crash = resolve;
  });
  let answers = 0;
  const count = (): void => {
    if (++answers >= after) crash();
  };
  await Promise.all(clients.map((steps) => history.run(world, steps, crashed, count)));
}

/** Reads until its store is gone. */
class Watcher {
  readonly ended: Promise<void>;
  readonly known = new Map<string, Resource>();
  readonly revisions: number[] = [];
  bookmark: Bookmark | undefined;

  constructor(reader: Reader) {
    this.ended = this.#read(reader);
  }

  see(event: StateEvent): void {
    if (event.type === 'created' || event.type === 'updated') this.known.set(event.resource.metadata.id, event.resource);
    else if (event.type === 'destroyed') this.known.delete(event.resource.metadata.id);
    if (event.revision !== undefined) this.revisions.push(event.revision);
    this.bookmark = event.bookmark ?? this.bookmark;
  }

  async #read(reader: Reader): Promise<void> {
    try {
      for (let event = await reader.next(); event.type !== 'errored'; event = await reader.next()) this.see(event);
    } catch {
      // The crash has ended it, in whatever way.
    }
  }
}

async function goOn(world: World, watcher: Watcher, marker: string): Promise<void> {
  if (watcher.bookmark === undefined) return;
  const reader = await world.watchKind({ startFromBookmark: watcher.bookmark });
  for (const event of await reader.takeUntil((each) => idOf(each) === marker, 'the write after the crash')) watcher.see(event);
  const { items } = await world.core.list(world.kind);
  const text = ({ metadata }: Resource): string => `${metadata.id} ${metadata.version}`;
  assert.deepEqual(
    [...watcher.known.values()].map(text).sort(),
    items.map(text).sort(),
    'W7 over a crash: what a watcher knows is the state',
  );
}

/** Cases for stores that can be crashed, which need no chance. */
export const crashCases: readonly Case[] = [
  {
    name: 'crash: K4, what was acknowledged is there as it was, and no version is used twice',
    async run(world) {
      await world.create('a', 1, { labels: { app: 'web' }, finalizers: ['f'] }, { owner: 'A' });
      await world.state.teardown(world.pointer('a'), { owner: 'A' });
      await Promise.all(Array.from({ length: 20 }, (_, index) => world.create(`n${index}`, index)));
      await world.core.destroy(world.pointer('n3'));
      const stale = await world.core.get(world.pointer('n4'));
      await world.resize('n4', 44);
      const last = await world.create('z');
      await world.core.destroy(world.pointer('z'));
      const before = await world.core.list(world.kind);
      await world.crash();
      const after = await world.core.list(world.kind);
      assert.ok(sameValue(after.items, before.items), 'a crash must change nothing that was acknowledged');
      await expectRejects(world.core.update(stale), { code: 'Conflict', reason: 'version' });
      const next = await world.create('z');
      // The destroy before the crash took one more.
      assert.ok(Number(next.metadata.version) > Number(last.metadata.version) + 1, 'a version was used twice');
      assert.notEqual(next.metadata.uid, last.metadata.uid);
    },
  },
];
