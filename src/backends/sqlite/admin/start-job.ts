import { StoreFailure } from '../failures.ts';
import type { BackupRequest } from './backup-job.ts';
import { backupJob } from './backup-job.ts';
import type { CheckRequest } from './check-job.ts';
import { checkFileJob, checkJob } from './check-job.ts';
import type { CompactRequest } from './compact-job.ts';
import { compactJob } from './compact-job.ts';
import type { ImportRequest } from './import-job.ts';
import { importJob } from './import-job.ts';
import type { AnyJob, Job } from './jobs.ts';
import type { OwnedStore } from './open-store.ts';
import type { ReadRequest } from './read-job.ts';
import { readJob } from './read-job.ts';
import { openStoreReadOnly } from './read-only.ts';
import type { RepairRequest } from './repair-job.ts';
import { repairJob } from './repair-job.ts';
import type { RestoreRequest } from './restore-job.ts';
import { restoreJob } from './restore-job.ts';

export type JobRequest =
  | CompactRequest
  | ImportRequest
  | ReadRequest
  | RepairRequest
  | RestoreRequest
  /** Opens a file as far as reading goes: throws what an opening would. */
  | { readonly kind: 'look'; readonly file: string }
  /** `file`: a file that nobody has open; absent: the store that this thread has open. */
  | ((BackupRequest | CheckRequest) & { readonly file?: string });

export function startJob(request: JobRequest, open: OwnedStore | undefined): AnyJob {
  switch (request.kind) {
    case 'check':
      return request.file === undefined ? checkJob(needed(open), request) : checkFileJob(request.file, request);
    case 'backup':
      return request.file === undefined ? backupJob(needed(open), request) : backupFileJob(request.file, request);
    case 'import':
      return importJob(request);
    case 'read':
      return readJob(request);
    case 'look':
      return lookJob(request.file);
    case 'repair':
      return repairJob(request);
    case 'restore':
      return restoreJob(request);
    case 'compact':
      return compactJob(needed(open), request);
  }
}

// biome-ignore lint/correctness/useYield: a job of one step.
function* lookJob(file: string): Job<void> {
  openStoreReadOnly(file)[Symbol.dispose]();
}

function* backupFileJob(file: string, request: BackupRequest): Job {
  using store = openStoreReadOnly(file);
  return yield* backupJob(store, request);
}

function needed(open: OwnedStore | undefined): OwnedStore {
  if (open === undefined) throw new StoreFailure({ code: 'Unavailable', message: 'the store is not open' });
  return open;
}
