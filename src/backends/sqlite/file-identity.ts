import { statSync } from 'node:fs';

/** What a path named when it was looked at: device and inode. */
export type FileIdentity = readonly [path: string, identity: string];

/** The files of an open store: the database and its write-ahead log. */
export function identitiesOf(file: string): readonly FileIdentity[] {
  return [file, `${file}-wal`].map((path) => [path, identityOf(path)] as const);
}

/** The first path that no longer names what it did. */
export function changedPath(identities: readonly FileIdentity[]): string | undefined {
  return identities.find(([path, identity]) => identityOf(path) !== identity)?.[0];
}

/** Device and inode, as text. */
export function identityOf(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? 'absent' : `${found.dev}:${found.ino}`;
  } catch {
    return 'absent';
  }
}
