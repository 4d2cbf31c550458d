import type { FilePort, FileStat } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import { companions } from './admin/replace.ts';

/** What every SQLite database begins with. */
export const databaseHeader = 'SQLite format 3';

/**
 * Throws Invalid for a folder, a device or a pipe, also at the end of a link: these are neither read nor replaced. What is not there is
 * fine.
 */
export async function refuseOtherThanFile(files: FilePort, path: string): Promise<void> {
  const kind = await kindAt(files, path);
  if (kind === undefined || kind === 'file') return;
  throw new SteadystateError(
    'Invalid',
    kind === 'directory' ? `${path} is a folder; name a file in it` : `${path} is a device or a pipe, and is never replaced; name a file`,
  );
}

/**
 * Whether a path holds a store, a backup or any other SQLite database, or one of the files that belong beside one. Who puts something
 * else there loses it, whichever program has it open.
 */
export async function isDatabaseFile(files: FilePort, path: string): Promise<boolean> {
  return (await hasHeader(files, path)) || (await isBesideDatabase(files, path));
}

/** Whether a path is one of the files that belong beside a database. */
export async function isBesideDatabase(files: FilePort, path: string): Promise<boolean> {
  const end = companions.find((each) => path.endsWith(each));
  return end !== undefined && (await hasHeader(files, path.slice(0, -end.length)));
}

/** What a path leads to; `undefined`: nothing. */
async function kindAt(files: FilePort, path: string): Promise<FileStat['kind'] | undefined> {
  const there = await files.stat(path);
  if (there?.kind !== 'symlink') return there?.kind;
  let real: string;
  try {
    real = await files.realPath(path);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  }
  return (await files.stat(real))?.kind;
}

async function hasHeader(files: FilePort, path: string): Promise<boolean> {
  if ((await kindAt(files, path)) !== 'file') return false;
  return Buffer.from(await files.readRange(path, 0, databaseHeader.length)).toString('latin1') === databaseHeader;
}
