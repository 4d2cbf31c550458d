import { availableParallelism } from 'node:os';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Jobs } from './admin/jobs.ts';
import { startJob } from './admin/start-job.ts';
import { asFailure, StoreFailure } from './failures.ts';
import type { PackedCommit } from './packed-commit.ts';
import { unpackWrites } from './packed-commit.ts';
import type { RowsMessage, WorkerMessage, WorkerRequest } from './protocol.ts';
import { StoreFile } from './store-file.ts';
import { WorkGate } from './work-gate.ts';

/** The thread that owns the file: a disk sync here never stops the program's event loop. */
const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');

const gate = new WorkGate(workerData as Int32Array<SharedArrayBuffer>);
let store: StoreFile | undefined;
let file = '';
const jobs = new Jobs();

function handle(request: Exclude<WorkerRequest, { readonly call: 'load' }>): unknown {
  if (request.call === 'open') {
    file = request.file;
    store = new StoreFile(request, (failure) => post({ type: 'stopped', failure }));
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
    case 'find':
      return open.find(request.pointers);
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

/** A turn for each message: calls that are made meanwhile are answered in between. A close ends it. */
function load(sequence: number): void {
  let rows: Generator<RowsMessage, void, undefined>;
  let loaded: StoreFile;
  const step = (): void => {
    if (store !== loaded) return;
    let next: IteratorResult<RowsMessage, void>;
    try {
      next = rows.next();
    } catch (error) {
      return post(failed(sequence, error));
    }
    if (next.done) return post({ type: 'answer', sequence, value: undefined });
    post(next.value, [next.value.bytes.buffer]);
    setImmediate(step);
  };
  try {
    loaded = openStore();
    rows = loaded.load();
  } catch (error) {
    return post(failed(sequence, error));
  }
  step();
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

type Message = PackedCommit | { readonly sequence: number; readonly request: WorkerRequest };

/**
 * Who waits for each answer before the next write has the next one ready soon, and waking a thread that sleeps would cost it about
 * as much as all the rest. So after a commit that came this soon the thread looks out for another one for as long, milliseconds.
 */
const lookOutMs = 0.2;
/** On one processor looking out would only keep the writer from running. */
const mayLookOut = availableParallelism() > 1;
let answeredAt = Number.NEGATIVE_INFINITY;

port.on('message', (message: Message) => {
  let next: Message | undefined = message;
  while (next !== undefined) {
    const soon: boolean = mayLookOut && isCommit(next) && performance.now() - answeredAt < lookOutMs;
    gate.pass(() => receive(next as Message));
    answeredAt = performance.now();
    next = soon ? lookOut(answeredAt + lookOutMs) : undefined;
  }
});

function lookOut(until: number): Message | undefined {
  do {
    const found = receiveMessageOnPort(port as MessagePort) as { readonly message: Message } | undefined;
    if (found !== undefined) return found.message;
  } while (performance.now() < until);
  return undefined;
}

function receive(message: Message): void {
  if (isCommit(message)) return commit(message);
  const { sequence, request } = message;
  if (request.call === 'load') return load(sequence);
  let answer: WorkerMessage;
  try {
    answer = { type: 'answer', sequence, value: handle(request) };
  } catch (error) {
    answer = failed(sequence, error);
  }
  post(answer);
}

function isCommit(message: Message): message is PackedCommit {
  return Array.isArray(message);
}
