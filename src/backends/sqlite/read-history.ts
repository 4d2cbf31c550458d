import type { EventPlace } from './checksum.ts';
import { eventChecksum, resourceChecksum } from './checksum.ts';
import type { Database, SqlValue } from './driver.ts';
import { damaged } from './failures.ts';
import type { HistoryRow, StoredValue } from './protocol.ts';
import { created, destroyed } from './schema.ts';
import type { KindRow } from './store-file.ts';

export interface HistoryRequest {
  readonly file: string;
  readonly row: KindRow;
  readonly after: number;
  readonly upTo: number;
}

/**
 * Looks at every event once, all kinds: each has its checksum, and every revision above the floor has left one. Then a read of
 * one kind's events can rely on having found all of them.
 */
export function checkHistory(
  database: Database,
  request: { readonly file: string; readonly kinds: Iterable<KindRow>; readonly floor: number; readonly revision: number },
): void {
  const { file, floor, revision } = request;
  const seeds = new Map([...request.kinds].map(({ number, seed }) => [number, seed]));
  const events = database.prepare(`SELECT ${placeColumns}, crc, kind FROM events ORDER BY revision`);
  let expected = floor;
  for (const event of events.iterate()) {
    const seed = seeds.get(Number(event.kind));
    const place = placeOf(event);
    if (place.revision !== ++expected || seed === undefined || event.crc !== eventChecksum(seed, place))
      throw damaged(file, `its event log is broken at revision ${expected}`);
  }
  if (expected !== revision) throw damaged(file, `its event log ends at ${expected}, not at ${revision}`);
}

export const placeColumns = 'revision, uid, id, change, at, floor, count, digest, oldVersion';

export function placeOf(event: Record<string, SqlValue>): EventPlace {
  const { revision, uid, id, change, at, floor, count, digest, oldVersion } = event;
  return {
    revision: Number(revision),
    uid: Number(uid),
    id: String(id),
    change: Number(change),
    at: Number(at),
    floor: Number(floor),
    count: Number(count),
    digest: Number(digest),
    oldVersion: oldVersion === null ? null : Number(oldVersion),
  };
}

/**
 * Commits of one kind, oldest first. The log keeps of each change what was before, so it is read from its end: the
 * value after a change is the value before the next one of the same incarnation, and after the last one it is the resource.
 */
export function readHistory(database: Database, request: HistoryRequest): readonly HistoryRow[] {
  const { file, row, after, upTo } = request;
  const next = new Map<number, StoredValue | undefined>();
  const rows: HistoryRow[] = [];
  const present = database.prepare('SELECT version, crc, record FROM resources WHERE uid = ?');
  const check = (
    uid: number,
    id: string,
    version: SqlValue | undefined,
    crc: SqlValue | undefined,
    record: SqlValue | undefined,
  ): StoredValue => {
    const value = { version: Number(version), record: String(record) };
    if (crc !== resourceChecksum(row.seed, uid, value.version, id, value.record))
      throw damaged(file, `a former value of ${row.kind.type}/${row.kind.namespace}/${id} does not match its checksum`);
    return value;
  };
  const events = database.prepare(`SELECT ${placeColumns}, oldCrc, old FROM events WHERE kind = ? AND revision > ? ORDER BY revision DESC`);
  for (const event of events.iterate(row.number, after)) {
    const place = placeOf(event);
    const { uid, id } = place;
    const old = place.change === created ? undefined : check(uid, id, event.oldVersion, event.oldCrc, event.old);
    let value: StoredValue | undefined;
    if (place.change !== destroyed) {
      if (next.has(uid)) value = next.get(uid);
      else {
        const found = present.get(uid);
        value = check(uid, id, found?.version, found?.crc, found?.record);
      }
      if (value?.version !== place.revision) throw damaged(file, `event ${place.revision} has lost its value`);
    }
    next.set(uid, old);
    if (place.revision <= upTo) rows.push({ revision: place.revision, uid, id, value, old });
  }
  return rows.reverse();
}
