import type { Environment, Logger } from '../environment/index.ts';
import { sameValue } from '../resource/index.ts';
import { keepRunning } from './run-hook.ts';

/** What one task gets. */
export interface TaskContext<Spec> {
  readonly key: string;
  readonly spec: Spec;
  /** Aborts when the task is to end. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface TaskRunnerOptions<Spec> {
  readonly environment: Environment;
  /** @default the environment's */
  readonly log?: Logger;
  /** Returns: the task is finished. Throws: it is started again, after a back-off (500 ms, ×1.5, ±50 %, at most 60 s). */
  run(task: TaskContext<Spec>): Promise<void>;
  /** Whether a task of the one spec does for the other. @default deep equality */
  readonly same?: (left: Spec, right: Spec) => boolean;
}

/** Long tasks by key, for controllers: started, stopped, and started anew when their spec changes. Two of one key never overlap. */
export interface TaskRunner<Spec> extends AsyncDisposable {
  /** Sees to it that a task of this spec runs (or has finished); answers whether one had to be started. */
  start(key: string, spec: Spec): boolean;
  /** Resolves once the task of this key has ended. */
  stop(key: string): Promise<void>;
  /** Exactly these tasks: others are stopped, others' specs start anew. Resolves once what was stopped has ended. */
  reconcile(wanted: ReadonlyMap<string, Spec>): Promise<void>;
  /** Keys of tasks that run, wait to be started again, or have finished. */
  keys(): readonly string[];
  /** Stops all. */
  stopAll(): Promise<void>;
}

interface Task<Spec> {
  readonly spec: Spec;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export function createTaskRunner<Spec>(options: TaskRunnerOptions<Spec>): TaskRunner<Spec> {
  return new Tasks(options);
}

class Tasks<Spec> implements TaskRunner<Spec> {
  readonly #options: TaskRunnerOptions<Spec>;
  readonly #tasks = new Map<string, Task<Spec>>();
  /** What was told to stop, by key, until it has ended. */
  readonly #ending = new Map<string, Promise<void>>();

  constructor(options: TaskRunnerOptions<Spec>) {
    this.#options = options;
  }

  start(key: string, spec: Spec): boolean {
    const known = this.#tasks.get(key);
    if (known !== undefined && (this.#options.same ?? sameValue)(known.spec, spec)) return false;
    if (known !== undefined) this.#end(key, known);
    const stop = new AbortController();
    const before = this.#ending.get(key);
    const ended = before === undefined ? this.#run(key, spec, stop.signal) : before.then(() => this.#run(key, spec, stop.signal));
    this.#tasks.set(key, { spec, stop, ended });
    return true;
  }

  async stop(key: string): Promise<void> {
    const known = this.#tasks.get(key);
    if (known !== undefined) this.#end(key, known);
    await this.#ending.get(key);
  }

  async reconcile(wanted: ReadonlyMap<string, Spec>): Promise<void> {
    const stopped = [...this.#tasks.keys()].filter((key) => !wanted.has(key)).map((key) => this.stop(key));
    for (const [key, spec] of wanted) this.start(key, spec);
    await Promise.all(stopped);
  }

  keys(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#tasks.keys(), ...this.#ending.keys()].map((key) => this.stop(key)));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stopAll();
  }

  #end(key: string, task: Task<Spec>): void {
    this.#tasks.delete(key);
    task.stop.abort();
    const ending = task.ended.then(() => {
      if (this.#ending.get(key) === ending) this.#ending.delete(key);
    });
    this.#ending.set(key, ending);
  }

  #run(key: string, spec: Spec, signal: AbortSignal): Promise<void> {
    const { environment, run } = this.#options;
    const log = (this.#options.log ?? environment.log).with({ task: key });
    return keepRunning({
      environment,
      log,
      signal,
      what: `the task ${key}`,
      run: async () => run.call(this.#options, { key, spec, signal, log }),
    });
  }
}
