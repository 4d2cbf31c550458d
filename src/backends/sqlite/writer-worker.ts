import { parentPort } from 'node:worker_threads';
import type { WorkerMessage, WorkerRequest } from './protocol.ts';
import { StoreFailure, StoreFile } from './store-file.ts';

/** The thread that owns the file: a disk sync here never stops the program's event loop. */
const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');

let store: StoreFile | undefined;

function handle(request: WorkerRequest): unknown {
  if (request.call === 'open') {
    store = new StoreFile(request);
    return store.opened;
  }
  if (store === undefined) throw new StoreFailure({ code: 'Unavailable', message: 'the store is not open' });
  switch (request.call) {
    case 'load':
      return store.load((rows) => post({ type: 'rows', rows }));
    case 'commit':
      return store.commit(request.writes);
    case 'history':
      return store.history(request.kind, request.after, request.upTo);
    case 'close':
      store.close();
      store = undefined;
      return undefined;
  }
}

function post(message: WorkerMessage): void {
  port?.postMessage(message);
}

port.on('message', ({ sequence, request }: { readonly sequence: number; readonly request: WorkerRequest }) => {
  try {
    post({ type: 'answer', sequence, value: handle(request) });
  } catch (error) {
    const failure =
      error instanceof StoreFailure
        ? error.failure
        : { code: 'Unavailable' as const, message: `the store failed: ${error instanceof Error ? error.message : String(error)}` };
    post({ type: 'failure', sequence, failure });
  }
});
