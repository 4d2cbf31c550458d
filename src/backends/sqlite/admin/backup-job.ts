import { damaged, guard } from '../failures.ts';
import type { Job } from './jobs.ts';
import { NewStore } from './new-store.ts';
import type { OpenStore } from './open-store.ts';
import type { StoredRow } from './rows.ts';
import { isIntact, rowName, rowOf, rowsAfter } from './rows.ts';

export interface BackupRequest {
  readonly kind: 'backup';
  /** Where the new file is made: an empty file, or none. */
  readonly target: string;
  /** The identity of the copy. */
  readonly storeId: string;
  /** Where the copy goes on from. @default the store's own revision */
  readonly revision?: number;
}

export interface BackupAnswer {
  readonly resources: number;
  readonly revision: number;
}

/** So many changed rows are brought up to date in one step; doubled now and then, so that steady writers are caught up with. */
const changedPerStep = 100;

/**
 * Copies all resources while writes go on between the steps. What changes behind the copy is noted, and copied once more; in the
 * last step nothing is left, and the copy is the store at one revision. Every row is held against its checksum on the way, and
 * their number and digest against the store's own.
 */
export function* backupJob(store: OpenStore, request: BackupRequest): Job<BackupAnswer> {
  const { file, database } = store;
  const changed = new Set<number>();
  let after = 0;
  using _listening = store.onCommit?.((writes) => {
    for (const { uid } of writes) if (uid <= after) changed.add(uid);
  });
  const copy = new NewStore(request.target);
  try {
    const kinds = new Map(store.kinds().map((row) => [row.number, row]));
    const check = (row: StoredRow): StoredRow => {
      if (!kinds.has(row.kind)) for (const each of store.kinds()) kinds.set(each.number, each);
      const kind = kinds.get(row.kind);
      if (kind === undefined || !isIntact(row, kind))
        throw damaged(file, `the record of ${rowName(row, kind)} does not match its checksum`);
      copy.kind(kind);
      return row;
    };
    const progress = () => ({ step: 'copying resources', done: copy.count, total: store.head().count });
    for (;;) {
      const { rows, last } = guard(file, () => rowsAfter(database, after));
      for (const row of rows) copy.add(check(row));
      // At the end whatever is created is behind the copy, too.
      after = last ? Number.POSITIVE_INFINITY : (rows.at(-1) as StoredRow).uid;
      if (last) break;
      yield progress();
    }
    const renew = (most: number): void => {
      for (const uid of [...changed].slice(0, most)) {
        changed.delete(uid);
        const row = guard(file, () => rowOf(database, uid));
        copy.set(uid, row && check(row));
      }
    };
    for (let most = changedPerStep, round = 1; changed.size > most; round++) {
      renew(most);
      if (round % 50 === 0) most *= 2;
      yield progress();
    }
    renew(changed.size);
    const { count, digest, revision } = store.head();
    if (count !== copy.count || digest !== copy.digest)
      throw damaged(file, `${count} resources were written, ${copy.count} are found, or others`);
    copy.finish({ storeId: request.storeId, revision: request.revision ?? revision });
    return { resources: count, revision };
  } finally {
    copy.discard();
  }
}
