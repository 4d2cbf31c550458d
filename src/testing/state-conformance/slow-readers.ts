import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import { isInvalidBookmarkError, matchesQuery } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import type { QueryName } from './generated.ts';
import { queries } from './generated.ts';
import { fold } from './lag.ts';
import type { Reader } from './reader.ts';
import { idOf } from './reader.ts';
import type { World } from './world.ts';

/** One step of a run with readers that read too little. */
export type SlowStep =
  /** Changes ids in turn: what is missing is created, what is there is updated or, now and then, destroyed or made anew. */
  | { readonly do: 'write'; readonly id: number; readonly times: number; readonly mode: 'update' | 'toggle' | 'remake' | 'relabel' }
  | { readonly do: 'open'; readonly query: QueryName; readonly contents: boolean }
  | { readonly do: 'read'; readonly reader: number; readonly count: number };

interface SlowReader {
  readonly reader: Reader;
  readonly query: QueryName;
  readonly known: Map<string, Resource>;
  /** What was known when a bookmark came, to go on from there. */
  readonly places: { readonly bookmark: Bookmark; readonly known: ReadonlyMap<string, Resource> }[];
  /** Events that are certainly there to be read. */
  ready: number;
}

/**
 * Readers that fall behind at random: whatever they are told must fit what they know, and in the end all know the state; so does
 * a reader that goes on from any bookmark (W6, W7, W12).
 */
export async function runSlowReaders(world: World, steps: readonly SlowStep[], aboveCap: boolean): Promise<void> {
  const see = (reader: SlowReader, events: readonly StateEvent[]): void => {
    for (const event of events) {
      // Above the cap a store may not know any more whether its reader ever saw what went.
      const unknown = event.type === 'destroyed' && event.resync === true && !reader.known.has(event.resource.metadata.id);
      if (!aboveCap || !unknown) fold(reader.known, [event]);
      if (event.bookmark !== undefined) reader.places.push({ bookmark: event.bookmark, known: new Map(reader.known) });
    }
  };
  const readers: SlowReader[] = [];
  for (const step of steps) {
    if (step.do === 'write') for (let time = 0; time < step.times; time++) await change(world, `n${step.id}`, step.mode, time);
    else if (step.do === 'open') readers.push(await open(world, step.query, step.contents));
    else {
      const reader = readers[step.reader % Math.max(1, readers.length)];
      if (reader === undefined) continue;
      const count = Math.min(step.count, reader.ready);
      reader.ready -= count;
      see(reader, await reader.reader.take(count));
    }
  }
  await world.core.create(world.thing('zz', { size: 0 }, { labels: { app: 'web', end: '' } }));
  for (const reader of readers) {
    see(reader, await reader.reader.takeUntil((event) => idOf(event) === 'zz' && event.type === 'created', 'the last write'));
    await expectWhole(world, reader.query, reader.known);
    const places = reader.places.filter(({ known }) => !known.has('zz'));
    for (const index of new Set([0, Math.floor(places.length / 2), places.length - 1])) {
      const place = places[index];
      if (place !== undefined) await goOn(world, reader, place);
    }
  }
}

async function open(world: World, query: QueryName, contents: boolean): Promise<SlowReader> {
  const { items } = await world.core.list(world.kind, queries[query]);
  const reader = await world.watchKind({ ...queries[query], ...(contents ? { bootstrapContents: true } : { bootstrapBookmark: true }) });
  const known = new Map(contents ? [] : items.map((item) => [item.metadata.id, item]));
  return { reader, query, known, places: [], ready: contents ? items.length + 1 : 1 };
}

async function change(world: World, id: string, mode: 'update' | 'toggle' | 'remake' | 'relabel', time: number): Promise<void> {
  const { core } = world;
  const current = await core.get(world.pointer(id)).catch(() => undefined);
  const app = mode === 'relabel' && time % 2 === 0 ? 'db' : 'web';
  const next = world.thing(id, { size: time }, { labels: { app } });
  if (current === undefined) await core.create(next);
  else if (mode === 'update' || mode === 'relabel') await core.update(next, { currentVersion: current.metadata.version });
  else {
    await core.destroy(world.pointer(id));
    if (mode === 'remake') await core.create(next);
  }
}

async function expectWhole(world: World, query: QueryName, known: ReadonlyMap<string, Resource>): Promise<void> {
  const { items } = await world.core.list(world.kind);
  const expected = items.filter((item) => matchesQuery(item, queries[query])).map(versionText);
  assert.deepEqual([...known.values()].map(versionText).sort(), expected.sort(), `W7: what a reader of ${query} knows must be the state`);
}

/** Reads on from a bookmark, with what was known there. */
async function goOn(world: World, { query }: SlowReader, place: SlowReader['places'][number]): Promise<void> {
  let reader: Reader;
  try {
    reader = await world.watchKind({ ...queries[query], startFromBookmark: place.bookmark });
  } catch (error) {
    // An old one may have expired by now; it must say so.
    if (isInvalidBookmarkError(error)) return;
    throw error;
  }
  const known = new Map(place.known);
  // Inside a coalesced stretch the bookmark is the one before it, so that parts of the stretch come again.
  const apply = (event: StateEvent): void => {
    if (event.type === 'created' || event.type === 'updated') known.set(event.resource.metadata.id, event.resource);
    else if (event.type === 'destroyed') known.delete(event.resource.metadata.id);
  };
  for (const event of await reader.takeUntil((event) => idOf(event) === 'zz', 'the last write')) apply(event);
  await reader[Symbol.asyncDispose]();
  await expectWhole(world, query, known);
}

function versionText({ metadata }: Resource): string {
  return `${metadata.id} ${metadata.version}`;
}
