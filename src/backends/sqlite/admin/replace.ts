import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { seal, unseal } from '../checksum.ts';
import { openDatabase } from '../driver.ts';
import { identityOf } from '../file-identity.ts';
import { readHead } from '../head.ts';

/** What may stand beside a store. */
export const companions: readonly string[] = ['-wal', '-shm', '-journal', '-holder', '-reserve'];
/** Of those, what is of use beside the store that they belong to. */
const telling: readonly string[] = ['-wal', '-journal', '-holder'];

/**
 * Says, while one store file takes the place of another, whose companions are beside it. SQLite would take a write-ahead log that is
 * left over for the new file's own.
 */
interface HandOver {
  readonly storeId: string;
  readonly leftovers: readonly (readonly [end: string, identity: string])[];
}

const notePath = (file: string): string => `${file}-handover`;

/** A revision that no store has handed out: far past all that are known, and past what a store can have reached by now. */
export function revisionPast(seen: readonly number[], now: number): number {
  // A store that began at 0 has had fewer commits than this: a thousand for each millisecond of the clock.
  return Math.max(Math.max(0, ...seen) + 2 ** 32, Math.floor(now) * 1024);
}

/**
 * Puts a whole new store in the place of an old one, which stays under `kept` with everything that was beside it. Cut off anywhere,
 * the path leads to the one or to the other. The caller holds the old file's lock, as far as it can be locked.
 */
export function replaceStore(file: string, made: { readonly path: string; readonly storeId: string }, kept: string): string | undefined {
  syncPath(made.path);
  const before = existsSync(file);
  const beside = companions.filter((end) => existsSync(`${file}${end}`));
  if (before) {
    dropHalfKept(file);
    keep(file, kept);
    for (const end of beside) if (telling.includes(end)) keep(`${file}${end}`, `${kept}${end}`);
  }
  if (beside.length > 0) {
    const note: HandOver = { storeId: made.storeId, leftovers: beside.map((end) => [end, identityOf(`${file}${end}`)]) };
    writeFileSync(notePath(file), seal(JSON.stringify(note)), { mode: 0o600 });
    syncPath(notePath(file));
  }
  syncPath(dirname(file));
  renameSync(made.path, file);
  syncPath(dirname(file));
  finishReplacement(file);
  return before ? kept : undefined;
}

/** Ends a replacement that was cut off: what belongs to the replaced file goes, or the note of one that did not happen. */
export function finishReplacement(file: string): void {
  const path = notePath(file);
  if (!existsSync(path)) return;
  const text = unseal(readFileSync(path, 'utf8'));
  const note = text === undefined ? undefined : (JSON.parse(text) as HandOver);
  if (note !== undefined && storeIdOf(file) === note.storeId) {
    for (const [end, identity] of note.leftovers) if (identityOf(`${file}${end}`) === identity) rmSync(`${file}${end}`, { force: true });
    syncPath(dirname(file));
  }
  rmSync(path, { force: true });
}

/** The store of a file, whatever stands in the log beside it; `undefined` when it cannot be read. */
export function storeIdOf(file: string): string | undefined {
  try {
    const database = openDatabase(`${pathToFileURL(file).href}?immutable=1`, { readOnly: true });
    try {
      return readHead(String(database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.value))?.storeId;
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

/** One file under two names: nothing of it is copied, and nothing can go wrong on the way. */
function keep(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(String((error as { readonly code?: unknown }).code))) throw error;
    copyFileSync(from, to);
    syncPath(to);
  }
}

/** An earlier try that was cut off left a second name of the file that is still in use. */
function dropHalfKept(file: string): void {
  const own = identityOf(file);
  const prefixes = [`${basename(file)}.replaced-`, `${basename(file)}.damaged-`];
  for (const name of readdirSync(dirname(file))) {
    if (!prefixes.some((prefix) => name.startsWith(prefix))) continue;
    const path = join(dirname(file), name);
    if (lstatSync(path).isFile() && identityOf(path) === own)
      for (const end of ['', ...companions]) rmSync(`${path}${end}`, { force: true });
  }
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
