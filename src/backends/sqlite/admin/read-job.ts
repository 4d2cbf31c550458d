import { rmSync } from 'node:fs';
import { damaged, guard } from '../failures.ts';
import type { Job } from './jobs.ts';
import { openStoreReadOnly } from './read-only.ts';
import { isIntact, rowName, rowsAfter } from './rows.ts';

export interface ReadRequest {
  readonly kind: 'read';
  readonly file: string;
  /** The file is for this reading only: it goes at once, and lives on until it is read, or the program ends. */
  readonly once: boolean;
}

/** Gives all resources of a file that nobody has open, in the order of their creation. */
export function* readJob({ file, once }: ReadRequest): Job<void> {
  using store = openStoreReadOnly(file);
  if (once) rmSync(file);
  const kinds = new Map(store.kinds().map((row) => [row.number, row]));
  let after = 0;
  let done = 0;
  for (;;) {
    const { rows, last } = guard(file, () => rowsAfter(store.database, after));
    const given = rows.map((row) => {
      const kind = kinds.get(row.kind);
      if (kind === undefined || !isIntact(row, kind))
        throw damaged(file, `the record of ${rowName(row, kind)} does not match its checksum`);
      return { kind: kind.kind, id: row.id, uid: row.uid, version: row.version, record: row.record };
    });
    after = rows.at(-1)?.uid ?? after;
    done += rows.length;
    yield { step: 'reading resources', done, total: store.head().count, rows: given };
    if (last) break;
  }
  if (done !== store.head().count) throw damaged(file, `${store.head().count} resources were written, ${done} are found`);
}
