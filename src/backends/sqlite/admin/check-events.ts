import { eventChecksum, resourceChecksum } from '../checksum.ts';
import { guard } from '../failures.ts';
import { placeColumns, placeOf } from '../read-history.ts';
import { created, destroyed } from '../schema.ts';
import type { Findings } from './findings.ts';
import type { Job } from './jobs.ts';
import type { OpenStore } from './open-store.ts';
import { rowOf } from './rows.ts';

const eventsPerStep = 100;

/** Looks at every event: each revision above the floor has one, each is intact, and each value leads to the next. */
export function* checkEvents(store: OpenStore, findings: Findings): Job<number> {
  const { file, database } = store;
  /** The version that the last event of an incarnation left behind. */
  const left = new Map<number, number>();
  const kinds = new Map(store.kinds().map((row) => [row.number, row]));
  let count = 0;
  let at = store.head().floor;
  const read = (after: number) =>
    guard(file, () =>
      database
        .prepare(`SELECT ${placeColumns}, crc, kind, oldCrc, old FROM events WHERE revision > ? ORDER BY revision LIMIT ${eventsPerStep}`)
        .all(after),
    );
  for (;;) {
    // Older ones may go meanwhile.
    at = Math.max(at, store.head().floor);
    const events = findings.try(`events from ${at + 1} on`, () => read(at));
    if (events === undefined) return count;
    for (const event of events) {
      const place = placeOf(event);
      const { revision, uid, id, change, oldVersion } = place;
      const name = `event ${revision}`;
      if (revision !== at + 1)
        findings.add(name, revision === at + 2 ? `event ${at + 1} is missing` : `events ${at + 1} to ${revision - 1} are missing`);
      at = revision;
      count++;
      if (!kinds.has(Number(event.kind))) for (const each of store.kinds()) kinds.set(each.number, each);
      const kind = kinds.get(Number(event.kind));
      if (kind === undefined || event.crc !== eventChecksum(kind.seed, place)) {
        findings.add(name, `does not match its checksum (it names ${id}, uid ${uid})`);
        left.delete(uid);
        continue;
      }
      const about = `${kind.kind.type}/${kind.kind.namespace}/${id}`;
      if (change !== created) {
        if (event.oldCrc !== resourceChecksum(kind.seed, uid, Number(oldVersion), id, String(event.old)))
          findings.add(name, `the value before it of ${about} does not match its checksum`);
        const before = left.get(uid);
        if (before !== undefined && before !== oldVersion) findings.add(name, `${about} was at ${before}, the event says at ${oldVersion}`);
      }
      if (change === destroyed) left.delete(uid);
      else left.set(uid, revision);
    }
    const { revision } = store.head();
    if (events.length < eventsPerStep) {
      if (at < revision) findings.add('events', `they end at ${at}, the store is at ${revision}`);
      break;
    }
    yield { step: 'checking events', done: count, total: revision - store.head().floor };
  }
  yield* checkLast(store, findings, left);
  return count;
}

/** The last event of each incarnation left what the resource is now. */
function* checkLast(store: OpenStore, findings: Findings, left: ReadonlyMap<number, number>): Job<void> {
  const written = new Set<number>();
  using _listening = store.onCommit?.((writes) => {
    for (const { uid } of writes) written.add(uid);
  });
  let done = 0;
  for (const [uid, version] of left) {
    if (++done % eventsPerStep === 0) yield { step: 'comparing events', done, total: left.size };
    if (written.has(uid)) continue;
    const row = findings.try(`event ${version}`, () => rowOf(store.database, uid));
    if (row?.version === version) continue;
    findings.add(
      `event ${version}`,
      `it leads to uid ${uid} at version ${version}, ${row === undefined ? 'which is not there' : `which is at ${row.version}`}`,
    );
  }
}
