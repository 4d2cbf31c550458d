import { realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { sidePath } from './side-file.ts';

/** What a path named when it was looked at: device and inode. */
export type FileIdentity = readonly [path: string, identity: string];

/** The files of an open store: the database, its write-ahead log, and the notes of who holds it. */
export function identitiesOf(file: string): readonly FileIdentity[] {
  return [file, `${file}-wal`, sidePath(file)].map((path) => [path, identityOf(path)] as const);
}

/**
 * The first path that no longer names what it did. The notes may go, but not be another's: then a program has opened the
 * store although it is held here, as it can when the lock was lost.
 */
export function changedPath(identities: readonly FileIdentity[]): string | undefined {
  return identities.find(([path, identity], index) => {
    const found = identityOf(path);
    return found !== identity && (found !== absent || index < 2);
  })?.[0];
}

/** A file by its own name: SQLite keeps its log beside that, not beside a symbolic link to it. */
export function ownPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not there yet.
    return resolve(path);
  }
}

/** How many names a file has. */
export function nameCount(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.nlink ?? 0;
}

const absent = 'absent';

/** Device and inode, as text. */
export function identityOf(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? absent : `${found.dev}:${found.ino}`;
  } catch {
    return absent;
  }
}
