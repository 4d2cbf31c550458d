import type { Environment } from '../../environment/index.ts';
import { errorCode } from '../../resource/index.ts';
import type { OpenAnswer, OpenRequest } from './protocol.ts';
import { runJob } from './run-job.ts';
import { StoreWorker, thisProgram } from './store-worker.ts';

/**
 * Opens a file to write in a thread. One that was not closed is looked at first, by a thread of its own: to open it to write makes
 * SQLite fold in what it takes for the whole write-ahead log and drop the rest, which is all that is left of later writes when the
 * log is damaged.
 */
export async function openInWorker(
  environment: Environment,
  worker: StoreWorker,
  request: Omit<OpenRequest, 'call' | 'holder' | 'newStoreId'>,
): Promise<OpenAnswer> {
  const { file } = request;
  // Its log is beside the file itself, not beside a link to it. One that is not there has none.
  const real = await environment.files.realPath(file).catch(() => file);
  if (((await environment.files.stat(`${real}-wal`))?.size ?? 0) > 0)
    await withThread(environment, (thread) => runJob(thread, { kind: 'look', file }, {})).catch((error: unknown) => {
      // Looking takes a little room on the disk, opening none. Where it is the disk that fails, opening meets that too.
      if (errorCode(error) !== 'Unavailable' && errorCode(error) !== 'NoSpace') throw error;
    });
  return worker.call<OpenAnswer>({
    call: 'open',
    holder: `${thisProgram()} since ${environment.timestamp()}`,
    newStoreId: environment.id(),
    ...request,
  });
}

/** Runs something in a thread of its own. */
export async function withThread<Value>(environment: Environment, work: (worker: StoreWorker) => Promise<Value>): Promise<Value> {
  const worker = new StoreWorker(environment);
  try {
    return await work(worker);
  } finally {
    await worker.stop();
  }
}
