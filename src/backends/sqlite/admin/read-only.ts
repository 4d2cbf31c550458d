import { existsSync, rmSync } from 'node:fs';
import { kindSeed } from '../checksum.ts';
import type { Database } from '../driver.ts';
import { openDatabase, resultCode, sqliteBusy, sqliteReadOnly } from '../driver.ts';
import { asFailure, guard } from '../failures.ts';
import { ownPath } from '../file-identity.ts';
import { checkAlone, checkMark, checkSize, inUse, readState, readWritten, refuseForeignLog, refuseHeld } from '../open-file.ts';
import { readSideFile, sizeOf } from '../side-file.ts';
import type { KindRow } from '../store-file.ts';
import type { OpenStore } from './open-store.ts';
import { finishReplacement } from './replace.ts';

/** A file that nobody has open, open to be looked at: nothing of it changes. */
export interface ReadOnlyFile extends Disposable {
  readonly database: Database;
}

/** Opens a file to look at it, damaged or not; meanwhile nobody can open it to write. Throws Locked where somebody has. */
export function openReadOnly(path: string): ReadOnlyFile {
  const file = ownPath(path);
  refuseHeld(file);
  finishReplacement(file);
  refuseForeignLog(file, readSideFile(file)?.mark);
  try {
    return begin(file);
  } catch (error) {
    if (resultCode(error) === sqliteReadOnly && (sizeOf(`${file}-journal`) ?? 0) > 0) return guard(file, () => rollBackAndBegin(file));
    if (resultCode(error) === sqliteBusy) throw inUse(file, error);
    throw asFailure(file, error);
  }
}

function begin(file: string): ReadOnlyFile {
  // SQLite makes these while it reads a file that was not closed.
  const made = [`${file}-wal`, `${file}-shm`].filter((path) => !existsSync(path));
  let database: Database | undefined;
  const close = (): void => {
    try {
      // Statements that are not collected yet keep the file open; they must not keep its lock.
      database?.exec('ROLLBACK');
    } catch {
      // There was no transaction: the file was refused before one began.
    }
    database?.close();
    for (const path of made) if (path.endsWith('-shm') || sizeOf(path) === 0) rmSync(path, { force: true });
  };
  try {
    database = openDatabase(file, { readOnly: true });
    database.exec('PRAGMA busy_timeout = 0; PRAGMA cell_size_check = ON; BEGIN');
    // The lock is taken by the first read.
    database.prepare('PRAGMA schema_version').get();
    return { database, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

/** A kill while the file was opened or closed left a change half done: every opener takes it back before anything else. */
function rollBackAndBegin(file: string): ReadOnlyFile {
  const database = openDatabase(file);
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK');
  } finally {
    database.close();
  }
  return begin(file);
}

/** The same for a store that has to be right as far as its opening shows. Its rows are checked where they are read. */
export function openStoreReadOnly(path: string): OpenStore & Disposable {
  const file = ownPath(path);
  const notes = readSideFile(file);
  const mark = notes?.mark;
  checkSize(file, mark);
  const logBytes = sizeOf(`${file}-wal`) ?? 0;
  const opened = openReadOnly(file);
  const { database } = opened;
  try {
    guard(file, () => checkAlone(database, file, notes, logBytes));
    const written = guard(file, () => readWritten(database, file));
    const head = written && guard(file, () => readState(database, file, written));
    if (head !== undefined) checkMark(file, mark, head);
    const none = { format: 0, storeId: '', revision: 0, floor: 0, count: 0, digest: 0 };
    const kinds = head === undefined ? [] : guard(file, () => readKinds(database));
    return { file, database, head: () => head ?? none, kinds: () => kinds, [Symbol.dispose]: opened[Symbol.dispose] };
  } catch (error) {
    opened[Symbol.dispose]();
    throw error;
  }
}

export function readKinds(database: Database): readonly KindRow[] {
  return database
    .prepare('SELECT kind, namespace, type FROM kinds')
    .all()
    .map((row) => {
      const kind = { namespace: String(row.namespace), type: String(row.type) };
      return { kind, number: Number(row.kind), seed: kindSeed(kind) };
    });
}
