import type { StoreFinding } from '../../../state/index.ts';
import { damaged, guard, StoreFailure } from '../failures.ts';
import { readHead } from '../head.ts';
import { readState, readWritten } from '../open-file.ts';
import { checkFileJob } from './check-job.ts';
import { Findings } from './findings.ts';
import type { Job } from './jobs.ts';
import { NewStore } from './new-store.ts';
import { RawFile } from './raw-file.ts';
import { replaceStore, revisionPast } from './replace.ts';
import type { HeldFile, ReplaceRequest } from './restore-job.ts';
import { holdFile } from './restore-job.ts';
import type { Sums } from './salvage.ts';
import { Salvage } from './salvage.ts';

export interface RepairRequest extends ReplaceRequest {
  readonly kind: 'repair';
}

export interface RepairAnswer {
  readonly kept: string;
  readonly resources: number;
  readonly recovered: number;
  readonly dropped: readonly StoreFinding[];
  readonly more: number;
  readonly lost: number;
  readonly revision: number;
}

/** Makes a store of what is intact in a damaged one, and puts it in its place. */
export function* repairJob(request: RepairRequest): Job<RepairAnswer> {
  const { file, target, storeId, kept, now } = request;
  using held = holdFile(file);
  // Open until the end: to close it would drop the lock.
  using raw = new RawFile(file);
  const dropped = new Findings(file);
  const copy = new NewStore(target);
  try {
    const salvage = new Salvage(copy, dropped, sumsOf(held, file));
    if (held.opened !== undefined) yield* salvage.throughSqlite(held.opened, file);
    const [acknowledged = 0] = held.revisions;
    // The log may have been cut off behind what SQLite takes for its end.
    if (!salvage.complete || acknowledged > Math.max(...held.revisions.slice(1), 0)) {
      yield { step: 'reading every page', done: 0, total: 0 };
      salvage.throughPages(raw);
    }
    const lost = salvage.tell();
    const revision = revisionPast([...held.revisions, salvage.newest], now);
    copy.finish({ storeId, revision });
    const { findings } = yield* checkFileJob(target, { kind: 'check', quick: false });
    if (findings[0] !== undefined)
      throw new StoreFailure({
        code: 'Unavailable',
        message: `the repaired file is not right: ${findings[0].place}: ${findings[0].message}`,
      });
    const there = replaceStore(file, { path: target, storeId }, kept);
    if (there === undefined) throw damaged(file, 'it went away while it was repaired');
    return { kept, resources: copy.count, recovered: salvage.recovered, dropped: dropped.list, more: dropped.more, lost, revision };
  } finally {
    copy.discard();
  }
}

/** What the store says that it holds, as far as that can be read. */
function sumsOf({ opened }: HeldFile, file: string): Sums | undefined {
  if (opened === undefined) return undefined;
  const { database } = opened;
  const attempts = [
    () => {
      const written = readWritten(database, file);
      return written && readState(database, file, written);
    },
    () => readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value)),
  ];
  for (const attempt of attempts) {
    try {
      return guard(file, attempt);
    } catch (error) {
      if (!(error instanceof StoreFailure) || error.failure.code !== 'Corrupt') throw error;
    }
  }
  return undefined;
}
