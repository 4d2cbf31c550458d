import { dirname, resolve } from 'node:path';
import type { Environment } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { StoreFinding, StoreTaskOptions } from '../../state/index.ts';
import type { RepairAnswer } from './admin/repair-job.ts';
import type { ReplaceRequest, RestoreAnswer } from './admin/restore-job.ts';
import type { JobRequest } from './admin/start-job.ts';
import { withThread } from './open-in-worker.ts';
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

async function replace<Answer>(
  options: StoreFileOptions,
  name: 'replaced' | 'damaged',
  job: (request: ReplaceRequest) => JobRequest,
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
    const answer = await withThread(environment, (worker) => runJob<Answer>(worker, request, options));
    return { file, storeId, answer };
  } finally {
    await files.remove(target);
  }
}
