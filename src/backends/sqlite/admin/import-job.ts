import { rmSync } from 'node:fs';
import { StoreFailure } from '../failures.ts';
import { sizeOf } from '../side-file.ts';
import type { GivenRow, Job } from './jobs.ts';
import { NewStore, newRow } from './new-store.ts';
import { openStoreReadOnly } from './read-only.ts';
import { companions, replaceStore, revisionPast } from './replace.ts';
import type { ReplaceRequest } from './restore-job.ts';

export interface ImportRequest extends ReplaceRequest {
  readonly kind: 'import';
}

export interface ImportAnswer {
  readonly resources: number;
  readonly revision: number;
}

/** Makes a store of the rows that are handed in, and puts it in the place of an empty one. An empty step says that there are no more. */
export function* importJob({ file, target, storeId, kept, now }: ImportRequest): Job<ImportAnswer, readonly GivenRow[]> {
  using old = (sizeOf(file) ?? 0) === 0 ? undefined : openStoreReadOnly(file);
  if ((old?.head().count ?? 0) > 0) throw refused(`${file} holds ${old?.head().count} resources: uids are kept only into an empty store`);
  const copy = new NewStore(target);
  try {
    const kinds = new Map<string, number>();
    let newest = old?.head().revision ?? 0;
    for (;;) {
      const rows = yield { step: 'reading resources', done: copy.count, total: 0 };
      if (rows.length === 0) break;
      for (const row of rows) {
        const { kind, uid, version } = row;
        const name = `${kind.type}\u0000${kind.namespace}`;
        const number = kinds.get(name) ?? kinds.size + 1;
        kinds.set(name, number);
        copy.kind({ number, kind });
        const about = `${kind.type}/${kind.namespace}/${row.id}`;
        if (copy.versionOf(uid) !== undefined) throw refused(`${about}: uid ${uid} is there twice`);
        copy.add(newRow({ number, kind }, row));
        newest = Math.max(newest, version);
      }
    }
    const [twice] = copy.dropTwice();
    if (twice !== undefined) throw refused(`${twice.id} is there twice, under uid ${twice.uid} and another`);
    const revision = revisionPast([newest], now);
    copy.finish({ storeId, revision });
    // What it takes the place of held nothing.
    if (replaceStore(file, { path: target, storeId }, kept) !== undefined)
      for (const end of ['', ...companions]) rmSync(`${kept}${end}`, { force: true });
    return { resources: copy.count, revision };
  } finally {
    copy.discard();
  }
}

function refused(message: string): StoreFailure {
  return new StoreFailure({ code: 'Unsupported', message });
}
