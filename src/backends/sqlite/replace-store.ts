import { dirname, resolve } from 'node:path';
import type { Environment } from '../../environment/index.ts';
import type { Resource } from '../../resource/index.ts';
import { pointerText, SteadystateError } from '../../resource/index.ts';
import type { StoreFinding, StoreTaskOptions } from '../../state/index.ts';
import type { ImportAnswer } from './admin/import-job.ts';
import type { GivenRow } from './admin/jobs.ts';
import type { RepairAnswer } from './admin/repair-job.ts';
import type { ReplaceRequest, RestoreAnswer } from './admin/restore-job.ts';
import type { JobRequest } from './admin/start-job.ts';
import { withThread } from './open-in-worker.ts';
import { encodeRecord } from './record-codec.ts';
import { runJob } from './run-job.ts';

export interface StoreFileOptions extends StoreTaskOptions {
  /** Path of the store's file. */
  readonly file: string;
  readonly environment: Environment;
}

export interface RestoreOptions extends StoreFileOptions {
  /** A file that `backup` wrote, or any store file that is not open. */
  readonly backup: string;
}

export interface StoreRestore {
  readonly file: string;
  /** Where the store that was there before is kept; `undefined`: there was none. */
  readonly replaced: string | undefined;
  readonly resources: number;
  readonly storeId: string;
  readonly revision: number;
}

export interface StoreRepair {
  readonly file: string;
  /** Where the damaged file is kept. */
  readonly kept: string;
  readonly resources: number;
  /** How many of them stood on pages that nothing leads to any more. */
  readonly recovered: number;
  /** What could not be kept, or not as it was last, by name. */
  readonly dropped: readonly StoreFinding[];
  /** How many more there were than are listed. */
  readonly more: number;
  /** How many are missing whose names nothing tells. */
  readonly lost: number;
  readonly storeId: string;
  readonly revision: number;
}

/**
 * Puts the resources of a backup in the place of a store. The backup is checked first; the store that was there stays beside it. The
 * restored store has an id of its own and goes on from a revision that neither of the two can have handed out, so that no bookmark and
 * no version from before fits by mistake.
 *
 * Rejects with NotFound for a missing backup, Locked when the store or the backup is open, Corrupt for a damaged backup (nothing is
 * changed then), Unsupported for a newer one.
 */
export async function restoreStore(options: RestoreOptions): Promise<StoreRestore> {
  const backup = resolve(options.backup);
  const { files } = options.environment;
  const [there, store] = [await files.stat(backup), await files.stat(resolve(options.file))];
  if (there === undefined) throw new SteadystateError('NotFound', `the backup ${backup} does not exist`);
  if (there.identity === store?.identity)
    throw new SteadystateError('Invalid', `${backup} is the store itself; name the backup to restore, and the store with --store`);
  const { file, storeId, answer } = await replace<RestoreAnswer>(options, 'replaced', (request) => ({
    ...request,
    kind: 'restore',
    backup,
  }));
  return { file, storeId, ...answer };
}

/**
 * Makes a right store out of a damaged one: every resource that proves itself by its checksum is kept, also from pages that are
 * damaged or that nothing leads to; what cannot be kept is named. The damaged file stays beside it as it was. The event log starts
 * anew, and the store has an id and a revision as after `restoreStore`.
 *
 * Rejects with NotFound for a missing file, Locked when it is open, Unsupported when it is none of ours, or newer.
 */
export async function repairStore(options: StoreFileOptions): Promise<StoreRepair> {
  const file = resolve(options.file);
  if ((await options.environment.files.stat(file)) === undefined)
    throw new SteadystateError('NotFound', `the store ${file} does not exist`);
  const { storeId, answer } = await replace<RepairAnswer>(options, 'damaged', (request) => ({ ...request, kind: 'repair' }));
  return { file, storeId, ...answer };
}

export interface ImportOptions extends StoreFileOptions {
  /** With all of their metadata, parents before children. */
  readonly resources: AsyncIterable<Resource> | Iterable<Resource>;
}

export interface StoreImport {
  readonly file: string;
  readonly resources: number;
  readonly storeId: string;
  readonly revision: number;
}

/** Rows that go to the thread at once. */
const rowsPerStep = 500;

/**
 * Fills a store that is empty, or not there yet, with resources as another store had them: uids, versions, owners, phases and times
 * stay. All or nothing: the store is there once all of it is on disk. The id and the revision are as after `restoreStore`. Into a store
 * that holds something resources are created one by one; their uids are new then.
 *
 * Rejects with Unsupported when the store holds resources, or a uid or a name is there twice; Invalid for a resource without uid or
 * version; Locked when the store is open.
 */
export async function importStore(options: ImportOptions): Promise<StoreImport> {
  const from = options.resources;
  const iterator = Symbol.asyncIterator in from ? from[Symbol.asyncIterator]() : from[Symbol.iterator]();
  const between = async (): Promise<readonly GivenRow[]> => {
    const rows: GivenRow[] = [];
    while (rows.length < rowsPerStep) {
      const { done, value } = await iterator.next();
      if (done === true) break;
      rows.push(rowFrom(value));
    }
    return rows;
  };
  try {
    const { file, storeId, answer } = await replace<ImportAnswer>(
      options,
      'replaced',
      (request) => ({ ...request, kind: 'import' }),
      between,
    );
    return { file, storeId, ...answer };
  } finally {
    await iterator.return?.();
  }
}

function rowFrom(resource: Resource): GivenRow {
  const { namespace, type, id, uid, version } = resource.metadata;
  const place = { kind: { namespace, type }, id, uid: Number(uid), version: Number(version) };
  const right =
    [uid, version].every((text) => /^[1-9][0-9]{0,15}$/.test(text) && Number.isSafeInteger(Number(text))) && place.uid <= place.version;
  if (!right)
    throw new SteadystateError(
      'Invalid',
      `${pointerText(resource.metadata)}: expected a uid and a version of a store, found ${uid} and ${version}`,
      {
        pointer: { namespace, type, id },
      },
    );
  return { ...place, record: encodeRecord(resource) };
}

async function replace<Answer>(
  options: StoreFileOptions,
  name: 'replaced' | 'damaged',
  job: (request: ReplaceRequest) => JobRequest,
  between?: () => Promise<readonly GivenRow[]>,
): Promise<{ readonly file: string; readonly storeId: string; readonly answer: Answer }> {
  const { environment } = options;
  const { files } = environment;
  const given = resolve(options.file);
  const folder = dirname(given);
  if ((await files.stat(folder)) === undefined) throw new SteadystateError('NotFound', `the folder ${folder} does not exist`);
  // A link stays one: what it leads to is replaced.
  const file = (await files.stat(given)) === undefined ? given : await files.realPath(given);
  const storeId = environment.id();
  const target = await files.writeTemporary(file, new Uint8Array(), { mode: (await files.stat(file))?.mode ?? 0o600 });
  const kept = `${file}.${name}-${environment
    .timestamp()
    .slice(0, 23)
    .replace(/[^0-9]/g, '')}`;
  try {
    const request = job({ file, target, storeId, kept, now: environment.now() });
    const answer = await withThread(environment, (worker) => runJob<Answer>(worker, request, { ...options, ...(between && { between }) }));
    return { file, storeId, answer };
  } finally {
    await files.remove(target);
  }
}
