import type { Database } from './driver.ts';
import type { Head } from './head.ts';
import { formatVersion } from './head.ts';

/**
 * What each format needs to become the next. A step may be cut off anywhere and is then done again at the next open, so it must
 * bear being repeated; the file says the new format only once the step is done.
 */
const steps: Readonly<Record<number, (database: Database) => void>> = {
  // Format 2 keeps track of where its pages are used, so that compaction can give free ones back bit by bit.
  1: makeShrinkable,
};

/** Brings a file of an older format up to the present one, under the lock. It needs free room of about the file's size. */
export function migrate(database: Database, head: Head, write: (head: Head) => void): Head {
  let current = head;
  while (current.format < formatVersion) {
    steps[current.format]?.(database);
    current = { ...current, format: current.format + 1 };
    write(current);
  }
  return current;
}

/** Whether free pages can be given back without writing the whole file anew. */
export function givesPagesBack(database: Database): boolean {
  return Number(database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum) === incremental;
}

/** Has no effect on a file that is so already, or new. */
export function makeShrinkable(database: Database): void {
  if (!givesPagesBack(database)) database.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
}

const incremental = 2;
