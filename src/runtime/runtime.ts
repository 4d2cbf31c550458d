import { addAbortListener, setMaxListeners } from 'node:events';
import type { Environment, Logger } from '../environment/index.ts';
import type { Pointer } from '../resource/index.ts';
import { invalid } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { wrapCore } from '../state/index.ts';
import { registrationProblem } from './access.ts';
import type { QueueController } from './controller.ts';
import type { ControllerGraph } from './graph.ts';
import { graphOf } from './graph.ts';
import { KindFeed } from './kind-feed.ts';
import { QueueRunner } from './queue-runner.ts';

export interface RuntimeOptions {
  readonly state: CoreState;
  readonly environment: Environment;
  /** @default the environment's */
  readonly log?: Logger;
  /** How long what is in flight may go on after a stop, milliseconds. @default 30_000 */
  readonly graceMs?: number;
  /** Largest back-off of a key, milliseconds. @default 60_000 */
  readonly maxBackoffMs?: number;
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
}

export interface ControllerStatus {
  readonly name: string;
  readonly queued: number;
  readonly running: number;
  /** Keys of which there is something to tell. */
  readonly keys: readonly KeyStatus[];
}

/** Runs controllers over one state. */
export interface Runtime {
  /** Before or while running. Invalid when it does not fit beside the others; nothing is left behind then. */
  register(controller: QueueController): void;
  /** Runs until the signal aborts; then in-flight reconciles end, and the shutdown hooks run. Once per runtime. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves once every registered controller has seen what was there at the start. */
  synced(): Promise<void>;
  status(): readonly ControllerStatus[];
  graph(): ControllerGraph;
}

/** A runtime without controllers. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { environment } = options;
  const log = options.log ?? environment.log;
  const state = wrapCore(options.state, { environment });
  const runners: QueueRunner[] = [];
  const feeds = new Map<string, KindFeed>();
  const ended: Promise<void>[] = [];
  const waiting = new Set<object>();
  let syncedCallbacks: (() => void)[] = [];
  let stop: AbortSignal | undefined;
  let started = false;

  const feed = (namespace: string, type: string, signal: AbortSignal): KindFeed => {
    const key = `${namespace}\u0000${type}`;
    let found = feeds.get(key);
    if (found === undefined) {
      found = new KindFeed({ state, environment, log, kind: { namespace, type }, signal });
      feeds.set(key, found);
      ended.push(found.run());
    }
    return found;
  };

  const start = (runner: QueueRunner, signal: AbortSignal): void => {
    for (const input of runner.controller.inputs) {
      const mark = {};
      waiting.add(mark);
      feed(input.namespace, input.type, signal).subscribe(
        runner.subscriber(input, () => {
          waiting.delete(mark);
          if (waiting.size > 0) return;
          for (const callback of syncedCallbacks.splice(0)) callback();
        }),
      );
    }
    ended.push(runner.run(signal));
  };

  return {
    register(controller) {
      const problem = registrationProblem(
        controller,
        runners.map((runner) => runner.controller),
      );
      if (problem !== undefined) throw invalid([{ path: `controller ${controller.name}`, message: problem }]);
      const runner = new QueueRunner(controller, { environment, core: options.state, log, maxBackoffMs: options.maxBackoffMs });
      runners.push(runner);
      if (stop !== undefined && !stop.aborted) start(runner, stop);
    },
    async run(signal) {
      if (started) throw invalid([{ path: 'runtime', message: 'a runtime runs once; make another' }]);
      started = true;
      if (signal.aborted) return;
      // A signal of our own: everything that runs listens to it, which is no leak, however many there are.
      const stopping = new AbortController();
      setMaxListeners(0, stopping.signal);
      stop = stopping.signal;
      for (const runner of runners) start(runner, stop);
      await new Promise<void>((resolve) => {
        const listener = addAbortListener(signal, () => {
          listener[Symbol.dispose]();
          stopping.abort(signal.reason);
          resolve();
        });
      });
      for (const runner of runners) runner.shutDown();
      syncedCallbacks = [];
      await withinGrace(environment, options.graceMs ?? 30_000, Promise.all(ended), () => {
        const stuck = runners.flatMap((runner) => runner.inFlight().map((key) => `${runner.controller.name}: ${key}`));
        log.log('error', 'reconciles did not end within the grace period and are abandoned', { stuck });
      });
    },
    synced: () => (waiting.size === 0 && stop !== undefined ? Promise.resolve() : new Promise((resolve) => syncedCallbacks.push(resolve))),
    status: () => runners.map((runner) => runner.status()),
    graph: () => graphOf(runners.map((runner) => runner.controller)),
  };
}

async function withinGrace(environment: Environment, graceMs: number, ended: Promise<unknown>, late: () => void): Promise<void> {
  let timer: Disposable | undefined;
  const expired = new Promise<'late'>((resolve) => {
    timer = environment.after(graceMs, () => resolve('late'));
  });
  const outcome = await Promise.race([ended.then(() => 'ended' as const), expired]);
  timer?.[Symbol.dispose]();
  if (outcome === 'late') late();
}
