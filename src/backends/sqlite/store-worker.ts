import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Environment } from '../../environment/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { CommitAnswer } from './packed-commit.ts';
import { packCommit } from './packed-commit.ts';
import type { RowsMessage, WorkerFailure, WorkerMessage, WorkerRequest, WriteMessage } from './protocol.ts';
import { beforeExit, WorkGate } from './work-gate.ts';

interface Call {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A worker is always the built file: Node 20 cannot start one from TypeScript. */
function workerFile(): URL {
  const here = import.meta.url;
  return here.endsWith('.ts') ? new URL('../../../dist/backends/sqlite/writer-worker.js', here) : new URL('./writer-worker.js', here);
}

function startWorker(gate: WorkGate): Worker {
  try {
    // Flags of the program (--input-type, --import, …) are not the thread's.
    return new Worker(workerFile(), { execArgv: [], workerData: gate.cells });
  } catch (error) {
    throw threadError(error as Error);
  }
}

/** What becomes of a write when its thread fails nobody knows; where none could be started there is none. */
function threadError(error: Error): SteadystateError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ERR_ACCESS_DENIED')
    return new SteadystateError('Unavailable', 'the store needs a thread, and this program may start none; run it with --allow-worker', {
      cause: error,
    });
  if (code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND')
    return new SteadystateError(
      'Unavailable',
      `the file of the store's thread is missing (${error.message}); a program that is bundled leaves steadystate out of its bundle`,
      { cause: error },
    );
  return new SteadystateError('Ambiguous', `the store's thread failed: ${error.message}; open the store again`, { cause: error });
}

/** Calls to the thread that owns the file. */
export class StoreWorker {
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  readonly #environment: Environment;
  readonly #tracked: Disposable;
  /** There while calls are on their way: who wants to end the program at once must know. */
  #busy: Disposable | undefined;
  readonly #ended: Promise<void>;
  #onRows: ((message: RowsMessage) => void) | undefined;
  #rowsError: unknown;
  /** Called once when the disk has failed without a call to tell it to. */
  onStopped: ((error: SteadystateError) => void) | undefined;
  #sequence = 0;
  #failure: SteadystateError | undefined;

  constructor(environment: Environment) {
    const gate = new WorkGate();
    const leave = beforeExit(gate);
    this.#worker = startWorker(gate);
    this.#environment = environment;
    this.#tracked = environment.open.track('worker');
    this.#worker.on('message', (message: WorkerMessage) => this.#receive(message));
    this.#worker.on('error', (error) => this.#end(threadError(error)));
    this.#ended = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#end(new SteadystateError('Closed', 'the store was closed'));
        this.#tracked[Symbol.dispose]();
        leave();
        resolve();
      });
    });
  }

  call<Answer>(request: WorkerRequest): Promise<Answer> {
    return this.#send((sequence) => ({ sequence, request }));
  }

  /** Makes writes durable, all or none. `at`: the wall clock, milliseconds. Resolves with the floor of the event log. */
  commit(at: number, writes: readonly WriteMessage[]): Promise<number> {
    return this.#send((sequence) => packCommit(sequence, at, writes));
  }

  /** Calls back for each buffer of resources; an error of the callback is this call's. */
  async load(onRows: (message: RowsMessage) => void): Promise<void> {
    this.#onRows = onRows;
    await this.call({ call: 'load' });
    this.#onRows = undefined;
    if (this.#rowsError !== undefined) throw this.#rowsError;
  }

  /** Ends the thread; a file that is open is closed first. */
  async stop(): Promise<void> {
    await this.call({ call: 'close' }).catch(() => {});
    await this.#worker.terminate();
    await this.#ended;
  }

  #send<Answer>(message: (sequence: number) => unknown): Promise<Answer> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const sequence = this.#sequence++;
    this.#busy ??= this.#environment.open.track('storeCall');
    return new Promise<Answer>((resolve, reject) => {
      this.#calls.set(sequence, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.postMessage(message(sequence));
    });
  }

  #rest(): void {
    this.#busy?.[Symbol.dispose]();
    this.#busy = undefined;
  }

  #take(sequence: number): Call | undefined {
    const call = this.#calls.get(sequence);
    this.#calls.delete(sequence);
    if (this.#calls.size === 0) this.#rest();
    return call;
  }

  #receive(message: WorkerMessage): void {
    if (isCommitAnswer(message)) return this.#take(message[0])?.resolve(message[1]);
    if (message.type === 'rows') return this.#load(message);
    if (message.type === 'stopped') return this.onStopped?.(errorOf(message.failure));
    const call = this.#take(message.sequence);
    if (message.type === 'answer') return call?.resolve(message.value);
    call?.reject(errorOf(message.failure));
  }

  #load(message: RowsMessage): void {
    if (this.#rowsError !== undefined) return;
    try {
      this.#onRows?.(message);
    } catch (error) {
      this.#rowsError = error;
    }
  }

  #end(error: SteadystateError): void {
    this.#failure ??= error;
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
    this.#rest();
  }
}

function errorOf({ code, message, holder }: WorkerFailure): SteadystateError {
  return new SteadystateError(code, message, holder === undefined ? {} : { holder });
}

function isCommitAnswer(message: WorkerMessage): message is CommitAnswer {
  return Array.isArray(message);
}

/** Names this program to whoever finds the store in use. */
export function thisProgram(): string {
  return `process ${process.pid} on ${hostname()}`;
}
