import { guard, StoreFailure } from '../failures.ts';
import type { Job, JobStep } from './jobs.ts';
import type { OwnedStore } from './open-store.ts';

export interface CompactRequest {
  readonly kind: 'compact';
  /** How many events stay at least; `undefined`: as many as are young. */
  readonly keep: number | undefined;
  /** Only events before this moment go, wall clock; `undefined`: of whatever age. */
  readonly before: number | undefined;
}

export interface CompactAnswer {
  readonly forgotten: number;
  readonly floor: number;
  readonly revision: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** So many events go, and so many pages are given back, in one step. */
const eventsPerStep = 150;
const pagesPerStep = 32;

/** Drops old events, then gives free pages back. Each step is a commit of its own: cut off anywhere, the store is right. */
export function* compactJob(store: OwnedStore, { keep, before }: CompactRequest): Job<CompactAnswer> {
  const { database } = store;
  const bytesBefore = bytesOf(store);
  const first = store.head().floor;
  if (keep !== undefined || before !== undefined) {
    // What is written from now on stays in any case.
    const last = store.head().revision - (keep ?? 0);
    for (;;) {
      const { floor } = store.head();
      const upTo = Math.min(last, floor + eventsPerStep, before === undefined ? last : lastBefore(store, before));
      if (upTo <= floor) break;
      intoFull(store, () => store.forget(upTo));
      store.afterChange();
      yield { step: 'dropping events', done: store.head().floor - first, total: last - first };
    }
  }
  const free = freePages(store);
  for (let left = free; left > 0; ) {
    intoFull(store, () => store.change(() => database.exec(`PRAGMA incremental_vacuum(${pagesPerStep})`)));
    store.afterChange();
    const now = freePages(store);
    // Nothing came back: whoever writes meanwhile needs it.
    if (now >= left) break;
    left = now;
    yield { step: 'giving room back', done: free - left, total: free } satisfies JobStep;
  }
  store.fold();
  const { floor, revision } = store.head();
  return { forgotten: floor - first, floor, revision, bytesBefore, bytesAfter: bytesOf(store) };
}

/** On a full disk there is no room for even this, but for what is held for it. */
function intoFull(store: OwnedStore, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof StoreFailure) || error.failure.code !== 'NoSpace') throw error;
    store.makeRoom();
    work();
  }
}

/** The newest of the next events that is before a moment, all older ones too. */
function lastBefore({ file, database, head }: OwnedStore, before: number): number {
  const { floor } = head();
  const rows = guard(file, () =>
    database.prepare(`SELECT revision, at FROM events WHERE revision > ? ORDER BY revision LIMIT ${eventsPerStep}`).all(floor),
  );
  const young = rows.find(({ at }) => Number(at) >= before);
  return Number(young === undefined ? (rows.at(-1)?.revision ?? floor) : Number(young.revision) - 1);
}

function freePages({ file, database }: OwnedStore): number {
  return guard(file, () => Number(database.prepare('PRAGMA freelist_count').get()?.freelist_count));
}

function bytesOf({ file, database }: OwnedStore): number {
  return guard(
    file,
    () => Number(database.prepare('PRAGMA page_count').get()?.page_count) * Number(database.prepare('PRAGMA page_size').get()?.page_size),
  );
}
