import type { Database } from '../driver.ts';
import { asFailure } from '../failures.ts';
import { toggle } from '../head.ts';
import type { Findings } from './findings.ts';
import type { Job } from './jobs.ts';
import type { OpenStore } from './open-store.ts';
import type { StoredRow } from './rows.ts';
import { isIntact, readableRowsAfter, rowName } from './rows.ts';

/** Looks at every resource; answers how many are intact. Writes that come between are followed. */
export function* checkRows(store: OpenStore, findings: Findings): Job<number> {
  const { database } = store;
  let after = 0;
  let intact = 0;
  let count = 0;
  let digest = 0;
  let whole = true;
  using _listening = store.onCommit?.((writes) => {
    for (const { uid, oldVersion, revision, record } of writes) {
      if (uid > after) continue;
      // Behind the look: the sums move with it.
      if (oldVersion !== null) digest = toggle(digest, uid, oldVersion);
      if (record !== null) digest = toggle(digest, uid, revision);
      const more = Number(record !== null) - Number(oldVersion !== null);
      count += more;
      intact += more;
    }
  });
  const kinds = new Map(store.kinds().map((row) => [row.number, row]));
  for (;;) {
    const { rows, last, error } = readableRowsAfter(database, after);
    for (const row of rows) {
      if (!kinds.has(row.kind)) for (const each of store.kinds()) kinds.set(each.number, each);
      count++;
      digest = toggle(digest, row.uid, row.version);
      const kind = kinds.get(row.kind);
      if (kind === undefined || !isIntact(row, kind))
        findings.add(rowName(row, kind), `the record of uid ${row.uid}, version ${row.version}, does not match its checksum`);
      else {
        intact++;
        if (!isRecord(row.record)) findings.add(rowName(row, kind), `the record of uid ${row.uid} is no text of ours`);
      }
      after = row.uid;
    }
    if (error !== undefined) {
      whole = false;
      const next = nextReadable(database, after, store.head().revision);
      const until = next === undefined ? 'on' : `to ${next}`;
      findings.add('resources', `what stands from uid ${after + 1} ${until} cannot be read: ${asFailure(store.file, error).message}`);
      if (next === undefined) break;
      after = next - 1;
    }
    // No step between the last row and the sums: writers never stop.
    if (last) break;
    yield { step: 'checking resources', done: count, total: store.head().count };
  }
  after = Number.POSITIVE_INFINITY;
  const head = store.head();
  if (whole && (head.count !== count || head.digest !== digest))
    findings.add(
      'resources',
      `${head.count} were written, ${count} are found${head.count === count ? ', but others or in other versions' : ''}`,
    );
  return intact;
}

/** What decodes it is not needed to see that it can be decoded; a checksum that fits makes that all but certain. */
function isRecord(text: string): boolean {
  try {
    const value = JSON.parse(text) as unknown;
    return Array.isArray(value) && value.length === 2 && Array.isArray(value[0]);
  } catch {
    return false;
  }
}

/** The smallest uid behind a damaged place that can be read again. */
export function nextReadable(database: Database, after: number, last: number): number | undefined {
  const look = (from: number): number | undefined => {
    try {
      const found = database.prepare('SELECT uid FROM resources WHERE uid > ? ORDER BY uid LIMIT 1').get(from) as
        | Pick<StoredRow, 'uid'>
        | undefined;
      return found?.uid;
    } catch {
      return undefined;
    }
  };
  let step = 1;
  let failed = after;
  while (failed + step <= last && look(failed + step) === undefined) {
    failed += step;
    step *= 2;
  }
  if (failed + step > last && look(last) === undefined) return undefined;
  let works = Math.min(failed + step, last);
  while (works - failed > 1) {
    const middle = Math.floor((works + failed) / 2);
    if (look(middle) === undefined) failed = middle;
    else works = middle;
  }
  return look(works);
}
