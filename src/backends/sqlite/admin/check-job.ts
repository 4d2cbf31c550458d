import type { StoreCheck } from '../../../state/index.ts';
import { damaged, guard } from '../failures.ts';
import { formatVersion, readHead } from '../head.ts';
import { readState, readWritten } from '../open-file.ts';
import { readSideFile, sizeOf } from '../side-file.ts';
import { checkEvents } from './check-events.ts';
import { checkRows } from './check-rows.ts';
import { Findings } from './findings.ts';
import type { Job } from './jobs.ts';
import type { OpenStore } from './open-store.ts';
import { RawFile } from './raw-file.ts';
import { openReadOnly, readKinds } from './read-only.ts';
import { rowName } from './rows.ts';

export interface CheckRequest {
  readonly kind: 'check';
  readonly quick: boolean;
}

/** Looks at a store that is open. */
export function* checkJob(store: OpenStore, { quick }: CheckRequest): Job<StoreCheck> {
  return yield* check(store, new Findings(store.file), quick);
}

/** Looks at a file that nobody has open, however damaged it is. */
export function* checkFileJob(file: string, request: CheckRequest): Job<StoreCheck> {
  const findings = new Findings(file);
  const mark = readSideFile(file)?.mark;
  const nothing: StoreCheck = {
    findings: findings.list,
    more: 0,
    ...nobody,
    resources: 0,
    events: 0,
    bytes: sizeOf(file) ?? 0,
    freeBytes: 0,
  };
  if (nothing.bytes < 512) {
    if (nothing.bytes > 0 || (mark?.revision ?? 0) > 0) findings.failed('file', damaged(file, `it has only ${nothing.bytes} bytes`));
    return nothing;
  }
  const opened = findings.try('file', () => openReadOnly(file));
  if (opened === undefined) return nothing;
  // Closed after the other: to close it drops the lock.
  using raw = new RawFile(file);
  using _closing = opened;
  if (raw.writeVersion > 2) findings.add('file', `its header says that it may only be read (byte 18 is ${raw.writeVersion})`);
  const { database } = opened;
  let head = findings.try('head', () => guard(file, () => readWritten(database, file)));
  if (head === undefined) {
    if (findings.list.length === 0) return nothing;
    // What it says of itself may be readable where the rest of it is not.
    head = findings.try('head', () =>
      guard(file, () => readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value))),
    );
  } else {
    const written = head;
    head = findings.try('events', () => guard(file, () => readState(database, file, written))) ?? written;
  }
  const state = { ...nobody, ...head };
  if (mark !== undefined && mark.storeId === state.storeId && mark.revision > state.revision)
    findings.add(
      'side file',
      `revision ${mark.revision} was acknowledged, the file ends at ${state.revision}: its write-ahead log (${file}-wal) is missing or damaged`,
    );
  const kinds = findings.try('kinds', () => readKinds(database)) ?? [];
  return yield* check({ file, database, head: () => state, kinds: () => kinds }, findings, request.quick);
}

const nobody = { format: formatVersion, storeId: '', revision: 0, floor: 0, count: 0, digest: 0 };

function* check(store: OpenStore, findings: Findings, quick: boolean): Job<StoreCheck> {
  const { file, database } = store;
  if (!quick) {
    yield { step: 'checking pages', done: 0, total: 0 };
    const found = findings.try('file', () => guard(file, () => database.prepare('PRAGMA integrity_check(1000)').all()));
    for (const { integrity_check: text } of found ?? []) if (text !== 'ok') findings.add('file', String(text).replace(/\s+/g, ' '));
  }
  if (!quick && store.onCommit === undefined) findTwice(store, findings);
  const resources = (yield* checkRows(store, findings)) ?? 0;
  const events = (yield* checkEvents(store, findings)) ?? 0;
  const number = (pragma: string): number =>
    findings.try('file', () => guard(file, () => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]))) ?? 0;
  const pageBytes = number('page_size');
  const { storeId, format, revision, floor } = store.head();
  return {
    findings: findings.list,
    more: findings.more,
    storeId,
    format,
    revision,
    floor,
    resources,
    events,
    bytes: number('page_count') * pageBytes,
    freeBytes: number('freelist_count') * pageBytes,
  };
}

/** Of an open store the names are unique: it was refused otherwise. */
function findTwice({ file, database, kinds }: OpenStore, findings: Findings): void {
  const twice = findings.try('resources', () =>
    guard(file, () => database.prepare('SELECT kind, id, count(*) AS times FROM resources GROUP BY kind, id HAVING count(*) > 1').all()),
  );
  for (const { kind, id, times } of twice ?? []) {
    const row = kinds().find(({ number }) => number === kind);
    findings.add(rowName({ id: String(id), uid: 0 }, row), `is there ${times} times`);
  }
}
