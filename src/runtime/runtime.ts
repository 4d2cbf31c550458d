import { addAbortListener, setMaxListeners } from 'node:events';
import type { Environment, Logger } from '../environment/index.ts';
import { guarded } from '../environment/index.ts';
import type { Kind, Pointer } from '../resource/index.ts';
import { checkKind, invalid, visibleText } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { closed } from '../state/index.ts';
import { Breather } from './breather.ts';
import { ClassicRunner } from './classic-runner.ts';
import type { AnyController } from './controller.ts';
import { isQueueController } from './controller.ts';
import { Feeds } from './feeds.ts';
import type { ControllerGraph } from './graph.ts';
import { graphOf } from './graph.ts';
import { QueueRunner } from './queue-runner.ts';
import { registrationProblem } from './registration.ts';
import type { Runner, RunnerOptions } from './runner.ts';
import { within } from './within.ts';
import type { WriteLimit } from './write-limiter.ts';
import { checkWriteLimit, WriteLimiter } from './write-limiter.ts';

export interface RuntimeOptions {
  readonly state: CoreState;
  readonly environment: Environment;
  /** @default the environment's */
  readonly log?: Logger;
  /** How long what is in flight may go on after a stop, and then as long again the shutdown hooks, milliseconds. @default 30_000 */
  readonly graceMs?: number;
  /** Largest back-off of a key, milliseconds. @default 60_000 */
  readonly maxBackoffMs?: number;
  /**
   * Reads of these kinds come from memory, all at one revision where the backend has one watch for several kinds. A controller
   * never runs on a view older than what it has written of them. @default none
   */
  readonly cachedKinds?: readonly Kind[];
  /** Workers of a queue controller that does not say so itself. @default 1 */
  readonly concurrency?: number;
  /** How much each controller may write. @default no limit */
  readonly writeLimit?: WriteLimit;
}

/** One key that runs, waits or fails. */
export interface KeyStatus {
  readonly pointer: Pointer;
  readonly running: boolean;
  /** Consecutive failures. */
  readonly failures: number;
  readonly lastError?: string;
  /** RFC 3339. */
  readonly failingSince?: string;
  readonly nextRunInMs?: number;
  /** What its last run said that it waits for, and since when it says so (RFC 3339). */
  readonly blockedBecause?: string;
  readonly blockedSince?: string;
  /** It wrote again and again without a change of its inputs. */
  readonly slowedDown?: true;
}

export interface ControllerStatus {
  readonly name: string;
  readonly queued: number;
  readonly running: number;
  /** Keys of which there is something to tell. */
  readonly keys: readonly KeyStatus[];
  /** Of a classic controller: consecutive failures, the last one, and since when (RFC 3339). */
  readonly failures?: number;
  readonly lastError?: string;
  readonly failingSince?: string;
}

/** Runs controllers over one state. */
export interface Runtime {
  /** Before or while running. Invalid when it does not fit beside the others; nothing is left behind then. */
  register(controller: AnyController): void;
  /**
   * Runs until the signal aborts. Then nothing new is begun, in-flight runs end, and the shutdown hooks run; what takes longer than
   * the grace period is reported and abandoned, and nothing it does reaches the state any more. Once per runtime.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves once every registered controller has seen what was there at the start; Closed when the runtime stops before. */
  synced(): Promise<void>;
  status(): readonly ControllerStatus[];
  graph(): ControllerGraph;
}

/** A runtime without controllers. Invalid when an option is no good. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new ControllerRuntime(options);
}

class ControllerRuntime implements Runtime {
  readonly #options: RuntimeOptions;
  readonly #environment: Environment;
  readonly #log: Logger;
  readonly #graceMs: number;
  readonly #maxBackoffMs: number;
  readonly #feeds: Feeds;
  readonly #breather: Breather;
  readonly #runners: Runner[] = [];
  /** Runs of controllers, by their runner, until they have ended. */
  readonly #running = new Map<Runner, Promise<void>>();
  readonly #unsynced = new Set<Runner>();
  #waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];
  readonly #stop = new AbortController();
  readonly #hardStop = new AbortController();
  #phase: 'new' | 'running' | 'stopped' = 'new';

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#environment = guarded(options.environment, options.log ?? options.environment.log);
    this.#log = this.#environment.log;
    this.#graceMs = options.graceMs ?? 30_000;
    this.#maxBackoffMs = options.maxBackoffMs ?? 60_000;
    checkMs('graceMs', this.#graceMs);
    checkMs('maxBackoffMs', this.#maxBackoffMs);
    const { concurrency = 1 } = options;
    if (!Number.isSafeInteger(concurrency) || concurrency < 1)
      throw invalid([{ path: 'concurrency', message: `expected a whole number from 1, found ${concurrency}` }]);
    for (const kind of options.cachedKinds ?? []) checkKind(kind);
    if (options.writeLimit !== undefined) checkWriteLimit(options.writeLimit);
    this.#breather = new Breather(this.#environment);
    this.#feeds = new Feeds({
      core: options.state,
      environment: this.#environment,
      log: this.#log,
      cachedKinds: options.cachedKinds ?? [],
    });
    // All that runs listens to these two: no leak, however many there are.
    setMaxListeners(0, this.#stop.signal, this.#hardStop.signal);
  }

  register(controller: AnyController): void {
    const others = this.#runners.map((runner) => runner.controller);
    const problem = this.#phase === 'stopped' ? 'the runtime has stopped' : registrationProblem(controller, others, this.#options.state);
    if (problem !== undefined) throw invalid([{ path: `controller ${visibleText(String(controller.name))}`, message: problem }]);
    const runner = this.#makeRunner(controller);
    this.#runners.push(runner);
    this.#unsynced.add(runner);
    if (this.#phase === 'running') this.#start(runner);
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#phase !== 'new') throw invalid([{ path: 'runtime', message: 'a runtime runs once; make another' }]);
    this.#phase = 'running';
    if (!signal.aborted) {
      this.#feeds.start();
      for (const runner of this.#runners) this.#start(runner);
      await aborted(signal);
    }
    this.#phase = 'stopped';
    this.#stop.abort(signal.reason);
    for (const runner of this.#runners) runner.stopTaking();
    for (const { reject } of this.#waiting.splice(0)) reject(closed('the runtime was stopped'));
    const ended = await within(this.#environment, this.#graceMs, Promise.all(this.#running.values()));
    if (!ended) this.#reportStuck();
    this.#hardStop.abort(closed('the runtime has stopped, and its grace period is over'));
    if (!(await within(this.#environment, this.#graceMs, this.#feeds.stop())))
      this.#log.log('error', 'watches of the store did not end within the grace period and are abandoned', {});
    await this.#shutDown();
  }

  synced(): Promise<void> {
    if (this.#phase === 'stopped') return Promise.reject(closed('the runtime was stopped'));
    if (this.#phase === 'running' && this.#unsynced.size === 0) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  status(): readonly ControllerStatus[] {
    return this.#runners.map((runner) => runner.status());
  }

  graph(): ControllerGraph {
    return graphOf(this.#runners.map((runner) => runner.controller));
  }

  #makeRunner(controller: AnyController): Runner {
    const { state, writeLimit, concurrency = 1 } = this.#options;
    const options: RunnerOptions = {
      environment: this.#environment,
      core: state,
      log: this.#log.with({ controller: controller.name }),
      feeds: this.#feeds,
      cache: this.#feeds.cache,
      breather: this.#breather,
      maxBackoffMs: this.#maxBackoffMs,
      concurrency,
      limiter: writeLimit === undefined ? undefined : new WriteLimiter(this.#environment, writeLimit),
    };
    return isQueueController(controller) ? new QueueRunner(controller, options) : new ClassicRunner(controller, options);
  }

  #start(runner: Runner): void {
    const ended = runner
      .run(this.#stop.signal, this.#hardStop.signal, () => this.#synced(runner))
      .finally(() => this.#running.delete(runner));
    this.#running.set(runner, ended);
  }

  #synced(runner: Runner): void {
    this.#unsynced.delete(runner);
    if (this.#unsynced.size > 0) return;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  async #shutDown(): Promise<void> {
    const grace = new AbortController();
    setMaxListeners(0, grace.signal);
    const pending = new Set<string>();
    // Where something hangs still, the hook would not be after it.
    const hooks = this.#runners
      .filter((runner) => !this.#running.has(runner))
      .map(async (runner) => {
        const { name } = runner.controller;
        pending.add(name);
        try {
          await runner.shutdown(grace.signal);
        } catch (error) {
          this.#log.log('error', `the shutdown hook of ${name} failed`, { controller: name, error });
        }
        pending.delete(name);
      });
    if (!(await within(this.#environment, this.#graceMs, Promise.all(hooks))))
      this.#log.log('error', 'shutdown hooks did not end within the grace period and are abandoned', { stuck: [...pending] });
    grace.abort(closed('the runtime has stopped, and the grace period of its shutdown hooks is over'));
  }

  #reportStuck(): void {
    for (const runner of this.#running.keys()) {
      const { name } = runner.controller;
      const stuck = runner.inFlight();
      this.#log.log('error', `${name} did not end within the grace period and is abandoned, without its shutdown hook`, {
        controller: name,
        stuck,
      });
    }
  }
}

function checkMs(name: string, ms: number): void {
  if (!Number.isFinite(ms) || ms < 0)
    throw invalid([{ path: name, message: `expected a finite number of milliseconds from 0, found ${ms}` }]);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const listener = addAbortListener(signal, () => {
      listener[Symbol.dispose]();
      resolve();
    });
  });
}
