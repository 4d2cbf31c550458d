import type { Kind, Pointer } from '../../resource/index.ts';
import { resourceChecksum } from './checksum.ts';
import type { Database } from './driver.ts';
import { damaged } from './failures.ts';
import type { FoundRow } from './protocol.ts';
import type { KindRow } from './store-file.ts';

interface FindRequest {
  readonly file: string;
  readonly kindOf: (kind: Kind) => KindRow | undefined;
  readonly pointers: readonly Pointer[];
}

/** Resources by their names, of which the file has no index: one walk over all for many names. */
export function findRows(database: Database, { file, kindOf, pointers }: FindRequest): readonly FoundRow[] {
  const wanted = new Map<string, Pointer>();
  for (const pointer of pointers) {
    const row = kindOf(pointer);
    if (row !== undefined) wanted.set(placeOf(row.number, pointer.id), pointer);
  }
  if (wanted.size === 0) return [];
  const ids = JSON.stringify([...new Set([...wanted.values()].map(({ id }) => id))]);
  const found = new Map<string, FoundRow>();
  const rows = database.prepare(
    'SELECT uid, version, kind, id, crc, record FROM resources WHERE id IN (SELECT CAST(value AS TEXT) FROM json_each(?))',
  );
  for (const { uid, version, kind, id, crc, record } of rows.iterate(ids)) {
    const place = placeOf(Number(kind), String(id));
    const pointer = wanted.get(place);
    if (pointer === undefined) continue;
    const { namespace, type } = pointer;
    const row: FoundRow = { pointer, uid: Number(uid), version: Number(version), record: String(record) };
    if (crc !== resourceChecksum((kindOf(pointer) as KindRow).seed, row.uid, row.version, pointer.id, row.record))
      throw damaged(file, `the record of ${type}/${namespace}/${pointer.id} does not match its checksum`);
    if (found.has(place)) throw damaged(file, `it holds ${type}/${namespace}/${pointer.id} twice`);
    found.set(place, row);
  }
  return [...found.values()];
}

function placeOf(kind: number, id: string): string {
  return `${kind}/${id}`;
}
