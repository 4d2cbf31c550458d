import { finishReplacement, storeIdOf } from './admin/replace.ts';
import { eventChecksum, kindSeed } from './checksum.ts';
import type { Database, Statement } from './driver.ts';
import { openDatabase, resultCode, sqliteBusy, sqliteReadOnly } from './driver.ts';
import { damaged, guard, StoreFailure } from './failures.ts';
import { isOpenIn } from './file-identity.ts';
import type { Head } from './head.ts';
import { formatVersion, readHead, writeHead } from './head.ts';
import { givesPagesBack, makeShrinkable, migrate } from './migrations.ts';
import { placeColumns, placeOf } from './read-history.ts';
import { applicationId, tables } from './schema.ts';
import type { SideNotes } from './side-file.ts';
import { announceUse, isWritable, readSideFile, sidePath, sizeOf } from './side-file.ts';

export interface OpenedFile {
  readonly database: Database;
  readonly head: Head;
}

/** Opens a store's file for its one owner, makes its tables when it is new, and checks what it says of itself. */
export function openFile(file: string, options: { readonly newStoreId: string; readonly maxPages?: number | undefined }): OpenedFile {
  refuseHeld(file);
  finishReplacement(file);
  const notes = readSideFile(file);
  const mark = notes?.mark;
  checkSize(file, mark);
  refuseForeignLog(file, mark);
  const database = guard(file, () => lock(file, notes, options.maxPages));
  try {
    const written = guard(file, () => prepareTables(database, file, options.newStoreId));
    const head = guard(file, () => readState(database, file, written));
    checkMark(file, mark, head);
    // Only of a file that may be opened: one that is refused stays as it is.
    const current = guard(file, () => migrate(database, head, (next) => putHead(database).run('head', writeHead(next))));
    if (!guard(file, () => givesPagesBack(database))) throw damaged(file, 'its header does not say how its pages are kept');
    return { database, head: current };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Another process has the file open. */
export function inUse(file: string, cause?: unknown): StoreFailure {
  const holder = readSideFile(file)?.holder ?? 'another process';
  return new StoreFailure(
    { code: 'Locked', message: `${file} is in use by ${holder}; use that program's server, or stop it`, holder },
    cause,
  );
}

/**
 * A store is held by a lock, and that can be lost: the system drops it as soon as anything else in the holder's program closes the file,
 * such as a copy that it made. The holder still has its notes open then.
 */
export function refuseHeld(file: string): void {
  const pid = /^process ([0-9]+) /.exec(readSideFile(file)?.holder ?? '')?.[1];
  if (pid !== undefined && isOpenIn(Number(pid), sidePath(file))) throw inUse(file);
}

/** A copy that was put over a store by hand must not take in the log that the store left behind. */
export function refuseForeignLog(file: string, mark: SideNotes['mark']): void {
  if (mark === undefined || sizeOf(`${file}-wal`) === undefined) return;
  const storeId = storeIdOf(file);
  if (storeId === undefined || storeId === mark.storeId) return;
  throw new StoreFailure({
    code: 'Corrupt',
    message: `${file} is another store than the one that ${file}-wal belongs to, as if one was copied over the other; move ${file}-wal and ${file}-holder away, or use store restore`,
  });
}

/** Something that was acknowledged must not have gone. */
export function checkMark(file: string, mark: SideNotes['mark'], head: Head): void {
  if (mark?.storeId !== head.storeId || mark.revision <= head.revision) return;
  throw damaged(
    file,
    `revision ${mark.revision} was acknowledged, the file ends at ${head.revision}: its write-ahead log (${file}-wal) is missing or damaged`,
  );
}

/** SQLite takes a file that is too short to be a database for an empty one. */
export function checkSize(file: string, mark: SideNotes['mark']): void {
  const size = sizeOf(file) ?? 0;
  if (size < 512 && (size > 0 || (mark?.revision ?? 0) > 0)) throw damaged(file, `it has only ${size} bytes`);
}

/**
 * A file without a log must be whole by itself: of whole pages, and closed. One that was copied or moved without what lies beside
 * it says that it is in use, and not even the notes of its user are there. `logBytes` were there before SQLite looked: it makes
 * a log of its own.
 */
export function checkAlone(database: Database, file: string, notes: SideNotes | undefined, logBytes: number): void {
  if (logBytes > 0) return;
  const size = sizeOf(file) ?? 0;
  if (size % Number(database.prepare('PRAGMA page_size').get()?.page_size) !== 0)
    throw damaged(file, `its end is cut off: it has ${size} bytes, and those are no whole pages`);
  if (notes !== undefined || database.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'wal') return;
  throw damaged(file, `it was in use when it was left, or copied, and its write-ahead log (${file}-wal) is not beside it`);
}

function lock(file: string, notes: SideNotes | undefined, maxPages: number | undefined): Database {
  const logBytes = sizeOf(`${file}-wal`) ?? 0;
  const database = openDatabase(file);
  try {
    // One process owns the file, and the operating system frees it when that process ends in whatever way.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0; PRAGMA cell_size_check = ON');
    checkAlone(database, file, notes, logBytes);
    database.exec('BEGIN EXCLUSIVE; COMMIT');
    announceUse(file);
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${maxPages}`);
    // The lock is taken by the first write transaction.
    database.exec('BEGIN IMMEDIATE; COMMIT');
    return database;
  } catch (error) {
    database.close();
    // One byte of the file says that only newer programs may write it.
    if (resultCode(error) === sqliteReadOnly && isWritable(file)) throw damaged(file, 'it says that it may only be read', error);
    if (resultCode(error) !== sqliteBusy) throw error;
    throw inUse(file, error);
  }
}

function prepareTables(database: Database, file: string, newStoreId: string): Head {
  const written = readWritten(database, file);
  if (written !== undefined) return written;
  makeShrinkable(database);
  const head: Head = { format: formatVersion, storeId: newStoreId, revision: 0, floor: 0, count: 0, digest: 0 };
  database.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; ${Object.values(tables).join('; ')}`);
  putHead(database).run('head', writeHead(head));
  database.exec('COMMIT');
  return head;
}

/** What a file says of itself; `undefined`: it is empty. Throws for what is not ours, newer, or has other tables. */
export function readWritten(database: Database, file: string): Head | undefined {
  const found = new Map(
    database
      .prepare('SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL')
      .all()
      .map((row) => [String(row.name), String(row.sql)]),
  );
  const marked = Number(database.prepare('PRAGMA application_id').get()?.application_id) === applicationId;
  if (found.size === 0 && !marked) return undefined;
  const head = found.has('meta')
    ? readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value))
    : undefined;
  if (head !== undefined && head.format > formatVersion) {
    throw new StoreFailure({
      code: 'Unsupported',
      message: `${file} has format ${head.format}, this program knows formats up to ${formatVersion}; use a newer version of it`,
    });
  }
  if (head === undefined && !marked) {
    throw new StoreFailure({ code: 'Unsupported', message: `${file} is a database, but not a store of this program; name another file` });
  }
  const strange = Object.entries(tables).find(([name, sql]) => found.get(name) !== sql);
  if (head === undefined || strange !== undefined || found.size !== Object.keys(tables).length) {
    throw damaged(file, head === undefined ? 'what it says of itself cannot be read' : 'its tables are not ours');
  }
  return head;
}

/** The state after the newest event, which the head knows only of the last end. */
export function readState(database: Database, file: string, head: Head): Head {
  const event = database
    .prepare(`SELECT ${placeColumns}, crc, namespace, type FROM events LEFT JOIN kinds USING (kind) ORDER BY revision DESC LIMIT 1`)
    .get();
  if (event === undefined) {
    if (head.floor !== head.revision) throw damaged(file, 'its event log is gone');
    return head;
  }
  const place = placeOf(event);
  const seed = kindSeed({ namespace: String(event.namespace), type: String(event.type) });
  if (event.crc !== eventChecksum(seed, place) || place.revision < head.revision)
    throw damaged(file, `the newest event is ${place.revision}, it should be ${head.revision} at least, or it does not match its checksum`);
  const { revision, floor, count, digest } = place;
  return { ...head, revision, floor: Math.max(floor, head.floor), count, digest };
}

export function putHead(database: Database): Statement {
  return database.prepare('INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value');
}
