import { guard, StoreFailure } from '../failures.ts';
import { readHead } from '../head.ts';
import { readState, readWritten } from '../open-file.ts';
import { readSideFile, sizeOf } from '../side-file.ts';
import { backupJob } from './backup-job.ts';
import { checkFileJob } from './check-job.ts';
import type { Job } from './jobs.ts';
import type { ReadOnlyFile } from './read-only.ts';
import { openReadOnly, openStoreReadOnly } from './read-only.ts';
import { replaceStore, revisionPast } from './replace.ts';

/** What a job needs that puts a new file in the place of a store. */
export interface ReplaceRequest {
  readonly file: string;
  /** Where the new file is made, in the same folder: an empty file. */
  readonly target: string;
  readonly storeId: string;
  /** Where the old one goes. */
  readonly kept: string;
  /** The wall clock, milliseconds. */
  readonly now: number;
}

export interface RestoreRequest extends ReplaceRequest {
  readonly kind: 'restore';
  readonly backup: string;
}

export interface RestoreAnswer {
  readonly replaced: string | undefined;
  readonly resources: number;
  readonly revision: number;
}

/** Checks a backup, makes a store with its resources, and puts it in the place of the old one. */
export function* restoreJob(request: RestoreRequest): Job<RestoreAnswer> {
  const { backup, file, target, storeId, kept, now } = request;
  using old = holdFile(file);
  const { findings, more } = yield* checkFileJob(backup, { kind: 'check', quick: false });
  const [first] = findings;
  if (first !== undefined) {
    const rest = findings.length + more - 1;
    throw new StoreFailure({
      code: 'Corrupt',
      message: `${backup} is damaged: ${first.place}: ${first.message}${rest === 0 ? '' : ` (and ${rest} more)`}; nothing was restored; name another backup, or repair this one first`,
    });
  }
  using store = openStoreReadOnly(backup);
  if (store.head().storeId === '')
    throw new StoreFailure({
      code: 'Unsupported',
      message: `${backup} is empty: it holds no store that could be restored; name another file`,
    });
  const revision = revisionPast([store.head().revision, ...old.revisions], now);
  const { resources } = yield* backupJob(store, { kind: 'backup', target, storeId, revision });
  const replaced = replaceStore(file, { path: target, storeId }, kept);
  return { replaced, resources, revision };
}

/** The file that will be replaced: nobody opens it meanwhile. */
export interface HeldFile extends Disposable {
  /** Every revision that it is known to have reached. */
  readonly revisions: readonly number[];
  /** `undefined`: it is not there, or cannot be read by SQLite at all. */
  readonly opened: ReadOnlyFile | undefined;
}

/** Throws Locked where somebody has it open. */
export function holdFile(file: string): HeldFile {
  const revisions = [readSideFile(file)?.mark?.revision ?? 0];
  if ((sizeOf(file) ?? 0) < 512) return { revisions, opened: undefined, [Symbol.dispose]() {} };
  const opened = orNothing(() => openReadOnly(file));
  if (opened !== undefined) {
    const { database } = opened;
    const head = orNothing(() =>
      guard(file, () => readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value))),
    );
    if (head !== undefined) revisions.push(head.revision);
    const state = orNothing(() =>
      guard(file, () => {
        const written = readWritten(database, file);
        return written && readState(database, file, written);
      }),
    );
    if (state !== undefined) revisions.push(state.revision);
  }
  return { revisions, opened, [Symbol.dispose]: () => opened?.[Symbol.dispose]() };
}

/** Damage is why it is replaced; anything else stands in the way. A file that is none of ours must not be replaced by mistake. */
function orNothing<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreFailure && error.failure.code === 'Corrupt') return undefined;
    throw error;
  }
}
