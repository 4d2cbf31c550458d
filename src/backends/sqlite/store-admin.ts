import { basename, dirname, join, resolve } from 'node:path';
import type { Environment, FilePort } from '../../environment/index.ts';
import type { Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type {
  StoreAdmin,
  StoreBackup,
  StoreBackupOptions,
  StoreCheck,
  StoreCheckOptions,
  StoreCompaction,
  StoreCompactOptions,
  StoreTaskOptions,
} from '../../state/index.ts';
import type { BackupAnswer } from './admin/backup-job.ts';
import type { GivenRow } from './admin/jobs.ts';
import { companions } from './admin/replace.ts';
import { decodeStored } from './decode-stored.ts';
import { openInWorker, withThread } from './open-in-worker.ts';
import { databaseHeader, isBesideDatabase, refuseOtherThanFile } from './replaceable.ts';
import { runJob } from './run-job.ts';
import { applicationId } from './schema.ts';
import { StoreWorker } from './store-worker.ts';

/** Where the works of an administrator are done. */
export interface AdminHost {
  readonly environment: Environment;
  readonly file: string;
  /** Runs something in a thread. `own`: in one that has the store open to write. */
  use<Value>(own: boolean, work: (worker: StoreWorker) => Promise<Value>): Promise<Value>;
  /** The store is open here: its file must not be touched by anything else. */
  readonly open: boolean;
  compacted(floor: number): void;
}

/** So much of a copy is written before it is synced, bytes: a sync of all at the end would hold up the syncs of writers. */
const bytesPerSync = 8 * 1024 * 1024;

export function storeAdminOf(host: AdminHost): StoreAdmin {
  const { environment, file } = host;
  const { files } = environment;
  const source = host.open ? {} : { file };

  const exists = async (): Promise<void> => {
    if (!host.open && (await files.stat(file)) === undefined) throw new SteadystateError('NotFound', `the store ${file} does not exist`);
  };

  /** A whole copy of the store beside `target`, on disk, under a name of its own. */
  const copy = async (target: string, options: StoreTaskOptions): Promise<BackupAnswer & { readonly path: string }> => {
    const path = await files.writeTemporary(target, new Uint8Array(), { mode: 0o600 });
    try {
      let synced = 0;
      const answer = await host.use(false, (worker) =>
        runJob<BackupAnswer>(
          worker,
          { kind: 'backup', target: path, storeId: environment.id(), ...source },
          {
            ...options,
            between: async () => {
              const size = (await files.stat(path))?.size ?? 0;
              if (size - synced < bytesPerSync) return;
              synced = size;
              await files.sync(path);
            },
          },
        ),
      );
      await files.sync(path);
      return { ...answer, path };
    } catch (error) {
      await files.remove(path);
      throw error;
    }
  };

  return {
    async check(options: StoreCheckOptions = {}): Promise<StoreCheck> {
      await exists();
      const { quick = false } = options;
      return host.use(false, (worker) => runJob(worker, { kind: 'check', quick, ...source }, options));
    },

    async compact(options: StoreCompactOptions = {}): Promise<StoreCompaction> {
      const { keep, olderThanMs } = options;
      checkCount('keep', keep);
      checkCount('olderThanMs', olderThanMs);
      await exists();
      const before = olderThanMs === undefined ? undefined : environment.now() - olderThanMs;
      const done = await host.use(true, (worker) => runJob<StoreCompaction>(worker, { kind: 'compact', keep, before }, options));
      host.compacted(done.floor);
      return done;
    },

    async backup(given: string, options: StoreBackupOptions = {}): Promise<StoreBackup> {
      const target = resolve(given);
      await exists();
      await checkTarget(files, file, target, options.force ?? false);
      const { path, resources, revision } = await copy(target, options);
      try {
        await checkTarget(files, file, target, options.force ?? false);
        const { size: bytes } = (await files.stat(path)) ?? { size: 0 };
        await files.rename(path, target);
        await files.sync(dirname(target));
        return { file: target, resources, revision, bytes };
      } catch (error) {
        await files.remove(path);
        throw error;
      }
    },

    async *export(options: StoreTaskOptions = {}): AsyncGenerator<Resource> {
      await exists();
      // Of an open store a copy is read: reading takes as long as its reader.
      const from = host.open ? (await copy(file, options)).path : file;
      const worker = new StoreWorker(environment);
      const given: GivenRow[] = [];
      try {
        let over = false;
        let wake = (): void => {};
        let taken = (): void => {};
        const reading = runJob(
          worker,
          { kind: 'read', file: from, once: host.open },
          {
            ...options,
            between: ({ rows = [] }) =>
              new Promise<void>((next) => {
                given.push(...rows);
                taken = next;
                wake();
              }),
          },
        ).finally(() => {
          over = true;
          wake();
        });
        reading.catch(() => {});
        for (;;) {
          if (given.length === 0 && !over) await new Promise<void>((next) => (wake = next));
          for (const { record, ...place } of given.splice(0)) yield decodeStored(from, place, record);
          if (over) break;
          taken();
        }
        await reading;
      } finally {
        await worker.stop();
        if (host.open) await files.remove(from);
      }
    },
  };
}

/**
 * Looks after a store in a file that nobody has open. `check`, `backup` and `export` change nothing of it. Every call rejects with NotFound
 * for a missing file, Locked (naming the holder) when another process has it open.
 */
export function storeFileAdmin(options: { readonly file: string; readonly environment: Environment }): StoreAdmin {
  const { environment } = options;
  const file = resolve(options.file);
  return storeAdminOf({
    environment,
    file,
    open: false,
    compacted() {},
    use: (own, work) =>
      withThread(environment, async (worker) => {
        if (own)
          await openInWorker(environment, worker, {
            file,
            historyLimit: Number.MAX_SAFE_INTEGER,
            historyAgeMs: undefined,
            maxPages: undefined,
          });
        return work(worker);
      }),
  });
}

function checkCount(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return;
  throw new SteadystateError('Invalid', `${name}: expected a whole number from 0 up, found ${value}`);
}

/** A copy must not take the place of the store, of another one that is in use, or of what somebody wants to keep. */
async function checkTarget(files: FilePort, store: string, target: string, force: boolean): Promise<void> {
  const folder = dirname(target);
  if ((await files.stat(folder)) === undefined) throw new SteadystateError('NotFound', `the folder ${folder} does not exist`);
  const real = join(await files.realPath(folder), basename(target));
  const own = (await files.stat(store)) === undefined ? store : await files.realPath(store);
  const there = await files.stat(real);
  if (
    ['', ...companions].some((end) => real === `${own}${end}`) ||
    (there !== undefined && there.identity === (await files.stat(own))?.identity)
  )
    throw new SteadystateError('Invalid', `${target} belongs to the store itself; name another file`);
  if (await isBesideDatabase(files, real))
    throw new SteadystateError('Invalid', `${target} is a name that belongs to another store; name another file`);
  if (there === undefined) return;
  await refuseOtherThanFile(files, target);
  if (!force)
    throw new SteadystateError('Conflict', `${target} exists already; name another file, or use --force (force: true) to replace it`, {
      reason: 'alreadyExists',
    });
  if ((await files.stat(`${real}-holder`)) !== undefined)
    throw new SteadystateError('Locked', `${target} is a store that is in use, or was not closed; name another file`, {
      holder: 'another process',
    });
  // Whoever may ask a server for a backup must not be able to replace just any file on its machine.
  const begin = Buffer.from(await files.readRange(real, 0, 72));
  if (
    begin.length === 0 ||
    (begin.toString('latin1', 0, databaseHeader.length) === databaseHeader && begin.readUInt32BE(68) === applicationId)
  )
    return;
  throw new SteadystateError('Invalid', `${target} is no backup, and only those are replaced; remove it, or name another file`);
}
