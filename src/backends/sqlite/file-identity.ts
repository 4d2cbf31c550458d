import { readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { sidePath } from './side-file.ts';

/**
 * A path, and how it is told whether it still names what it did: a place to look at, and what was found there.
 *
 * Where the system shows the open files of a process, that place is the open file itself, whose link holds its present name: asking
 * for more, as `stat` does, makes Linux give the file a new time at its next write, and its sync half as dear again.
 */
export interface FileIdentity {
  readonly path: string;
  readonly place: string;
  readonly identity: string;
}

/** The files of an open store: the database, its write-ahead log, and the notes of who holds it. */
export function identitiesOf(file: string): readonly FileIdentity[] {
  const open = openFiles();
  return [file, `${file}-wal`, sidePath(file)].map((path) => {
    const place = open.get(path) ?? path;
    return { path, place, identity: identityAt(place) };
  });
}

/**
 * The first path that no longer names what it did. The notes may go, but not be another's: then a program has opened the
 * store although it is held here, as it can when the lock was lost.
 */
export function changedPath(identities: readonly FileIdentity[]): string | undefined {
  return identities.find(({ path, place, identity }, index) => {
    const found = identityAt(place);
    return found !== identity && (index < 2 || identityOf(path) !== absent);
  })?.path;
}

const ownFiles = '/proc/self/fd';

/** The files that this process has open, by name; none where the system does not show them. */
function openFiles(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let descriptors: readonly string[];
  try {
    descriptors = readdirSync(ownFiles);
  } catch {
    return found;
  }
  for (const descriptor of descriptors) {
    const place = `${ownFiles}/${descriptor}`;
    const name = linkOf(place);
    if (name !== undefined) found.set(name, place);
  }
  return found;
}

/** Whether a process has a file open, under whatever name; `false` where the system does not show it. */
export function isOpenIn(pid: number, path: string): boolean {
  const wanted = identityOf(path);
  if (wanted === absent) return false;
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((descriptor) => identityOf(`${folder}/${descriptor}`) === wanted);
  } catch {
    return false;
  }
}

function identityAt(place: string): string {
  return place.startsWith(ownFiles) ? (linkOf(place) ?? absent) : identityOf(place);
}

function linkOf(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch {
    return undefined;
  }
}

/** A file by its own name: SQLite keeps its log beside that, not beside a symbolic link to it. One that is not there yet is made where a link leads. */
export function ownPath(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch {
    const target = links < mostLinks ? linkOf(path) : undefined;
    if (target !== undefined) return ownPath(resolve(dirname(path), target), links + 1);
  }
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    // Neither is its folder.
    return resolve(path);
  }
}

/** As many the system follows; more are a circle. */
const mostLinks = 40;

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
