import { parentPort } from 'node:worker_threads';
import { Jobs } from './admin/jobs.ts';
import { startJob } from './admin/start-job.ts';
import { asFailure, StoreFailure } from './failures.ts';
import type { PackedCommit } from './packed-commit.ts';
import { unpackWrites } from './packed-commit.ts';
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
  const open = openStore();
  switch (request.call) {
    case 'load':
      return open.load((rows) => post(rows, [rows.bytes.buffer]));
    case 'history':
      return open.history(request.kind, request.after, request.upTo);
    case 'close':
      jobs.endAll();
      open.close();
      store = undefined;
      return undefined;
  }
}

function commit(packed: PackedCommit): void {
  const [sequence, at] = packed;
  let floor: number;
  try {
    floor = openStore().commit(unpackWrites(packed), at);
  } catch (error) {
    return post(failed(sequence, error));
  }
  post([sequence, floor]);
  store?.noteCommitted();
}

function openStore(): StoreFile {
  if (store === undefined) throw new StoreFailure({ code: 'Unavailable', message: 'the store is not open' });
  return store;
}

function failed(sequence: number, error: unknown): WorkerMessage {
  return { type: 'failure', sequence, failure: asFailure(file, error).failure };
}

function post(message: WorkerMessage, transfer: readonly ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer);
}

port.on('message', (message: PackedCommit | { readonly sequence: number; readonly request: WorkerRequest }) => {
  if (isCommit(message)) return commit(message);
  const { sequence, request } = message;
  let answer: WorkerMessage;
  try {
    answer = { type: 'answer', sequence, value: handle(request) };
  } catch (error) {
    answer = failed(sequence, error);
  }
  post(answer);
});

function isCommit(message: PackedCommit | object): message is PackedCommit {
  return Array.isArray(message);
}
