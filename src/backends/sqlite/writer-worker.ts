import { parentPort } from 'node:worker_threads';
import { Jobs } from './admin/jobs.ts';
import { startJob } from './admin/start-job.ts';
import { asFailure, StoreFailure } from './failures.ts';
import type { WorkerMessage, WorkerRequest } from './protocol.ts';
import { StoreFile } from './store-file.ts';

/** The thread that owns the file: a disk sync here never stops the program's event loop. */
const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');

let store: StoreFile | undefined;
let file = '';
const jobs = new Jobs();

function handle(request: WorkerRequest): unknown {
  if (request.call === 'open') {
    file = request.file;
    store = new StoreFile(request);
    return { ...store.opened, identities: store.identities };
  }
  switch (request.call) {
    case 'start':
      return jobs.start(startJob(request.job, store?.owned));
    case 'step':
      return jobs.step(request.job, request.rows);
    case 'end':
      return jobs.end(request.job);
  }
  if (store === undefined) throw new StoreFailure({ code: 'Unavailable', message: 'the store is not open' });
  switch (request.call) {
    case 'load':
      return store.load((rows) => post(rows, [rows.bytes.buffer]));
    case 'commit':
      return store.commit(request.writes, request.at);
    case 'history':
      return store.history(request.kind, request.after, request.upTo);
    case 'close':
      jobs.endAll();
      store.close();
      store = undefined;
      return undefined;
  }
}

function post(message: WorkerMessage, transfer: readonly ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer);
}

port.on('message', ({ sequence, request }: { readonly sequence: number; readonly request: WorkerRequest }) => {
  let answer: WorkerMessage;
  try {
    answer = { type: 'answer', sequence, value: handle(request) };
  } catch (error) {
    answer = { type: 'failure', sequence, failure: asFailure(file, error).failure };
  }
  post(answer);
  if (request.call === 'commit' && answer.type === 'answer') store?.noteCommitted();
});
