import {
  resultCode,
  sqliteCantOpen,
  sqliteCorrupt,
  sqliteError,
  sqliteFull,
  sqliteIoError,
  sqliteMismatch,
  sqliteNotADatabase,
  sqliteReadOnly,
} from './driver.ts';
import type { WorkerFailure } from './protocol.ts';

/** A failure with the code that the caller gets. */
export class StoreFailure extends Error {
  readonly failure: WorkerFailure;
  /** Of damage: what is wrong, without the file and the advice, for a list of findings. */
  readonly what: string;
  constructor(failure: WorkerFailure, cause?: unknown, what: string = failure.message) {
    super(failure.message, cause === undefined ? undefined : { cause });
    this.failure = failure;
    this.what = what;
  }
}

export function damaged(file: string, what: string, cause?: unknown): StoreFailure {
  return new StoreFailure({ code: 'Corrupt', message: `${file} is damaged: ${what}; restore a backup, or repair it` }, cause, what);
}

/** Runs something on the database, and tells its failures in our words. */
export function guard<Value>(file: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw asFailure(file, error);
  }
}

export function asFailure(file: string, error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  switch (resultCode(error)) {
    case sqliteFull:
      return new StoreFailure(
        {
          code: 'NoSpace',
          message: `no space left for ${file}: make room, or destroy something; an open store goes on reading and destroying`,
        },
        error,
      );
    // Our statements are fixed: one that means nothing to this file met other tables than ours.
    case sqliteError:
    case sqliteCorrupt:
    case sqliteNotADatabase:
    case sqliteMismatch:
      return damaged(file, `it is no database any more (${message})`, error);
    case sqliteReadOnly:
      return new StoreFailure({ code: 'Unavailable', message: `${file} may not be written: ${message}; check its permissions` }, error);
    case sqliteCantOpen:
      return new StoreFailure(
        { code: 'Unavailable', message: `${file} cannot be opened: ${message}; check that its folder exists and its permissions` },
        error,
      );
    case sqliteIoError:
      return new StoreFailure(
        { code: 'Unavailable', message: `reading or writing ${file} failed: ${message}; check the disk, then open the store again` },
        error,
      );
    default:
      // A number that no row of ours holds.
      if (codeOf(error) === 'ERR_OUT_OF_RANGE') return damaged(file, message, error);
      // What stands beside the file, or its folder.
      if (/^(?:EACCES|EPERM|EROFS)$/.test(codeOf(error)))
        return new StoreFailure(
          { code: 'Unavailable', message: `${file} may not be used: ${message}; check its permissions and those of its folder` },
          error,
        );
      return new StoreFailure({ code: 'Unavailable', message: `the store ${file} failed: ${message}` }, error);
  }
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown }).code);
}
