import type { SpanAttributes } from '../environment/index.ts';
import type { KeyedQueue, QueueItem } from '../queue/index.ts';
import { createQueue } from '../queue/index.ts';
import type { Metadata, Pointer } from '../resource/index.ts';
import { pointerText } from '../resource/index.ts';
import { AccessLimits, covers } from './access.ts';
import type { ContextOptions } from './context.ts';
import { controllerContext } from './context.ts';
import type { ControllerContext, Input, QueueController, ReconcileResult } from './controller.ts';
import type { Cause, WriteLog } from './hot-loops.ts';
import { HotLoops, newWriteLog } from './hot-loops.ts';
import { InputMapper } from './input-mapper.ts';
import { Instruments } from './instruments.ts';
import type { KeyRecord } from './key-records.ts';
import { KeyRecords } from './key-records.ts';
import { keyOf } from './keys.ts';
import type { FeedChange } from './kind-feed.ts';
import { isDelay, requeueOf, skipOf } from './run-errors.ts';
import { keepRunning } from './run-hook.ts';
import type { Outcome } from './run-spans.ts';
import { RunSpans } from './run-spans.ts';
import type { Runner, RunnerOptions } from './runner.ts';
import { contextOptions } from './runner.ts';
import type { ControllerStatus } from './runtime.ts';

/** What is there at the start, or is looked at once more, runs after what changes. */
const initialPriority = -100;
/** A key that is slowed down runs at most this often, milliseconds. */
const slowedMs = 1_000;

/** Runs one queue controller. */
export class QueueRunner implements Runner {
  readonly controller: QueueController;
  readonly #options: RunnerOptions;
  readonly #limits: AccessLimits;
  readonly #instruments: Instruments;
  readonly #queue: KeyedQueue;
  readonly #mapper: InputMapper;
  readonly #records: KeyRecords;
  readonly #hotLoops: HotLoops;
  readonly #primaries: readonly Input[];
  #runHookEnded = true;

  constructor(controller: QueueController, options: RunnerOptions) {
    const { environment, log } = options;
    this.controller = controller;
    this.#options = options;
    this.#limits = new AccessLimits(controller.name, controller.inputs, controller.outputs);
    this.#instruments = new Instruments(environment, controller.name);
    const queueOptions = { maxDelayMs: options.maxBackoffMs };
    const { queueLength, labels } = this.#instruments;
    this.#queue = createQueue(environment, { ...queueOptions, onReady: (ready) => queueLength.set(ready, labels) });
    this.#records = new KeyRecords(environment, log);
    this.#hotLoops = new HotLoops(environment);
    this.#primaries = controller.inputs.filter((input) => input.kind === 'primary');
    this.#mapper = new InputMapper({
      controller,
      environment,
      log,
      queueOptions,
      breather: options.breather,
      wake: (pointer, priority, afterMs, cause) => this.#wake(pointer, priority, afterMs, cause),
      wakeAll: () => this.#wakeAll(),
    });
  }

  /** Runs until the signal aborts and what was in flight has ended. Never rejects. */
  async run(signal: AbortSignal, hardSignal: AbortSignal, synced: () => void): Promise<void> {
    this.#instruments.queueLength.set(0, this.#instruments.labels);
    let missing = this.controller.inputs.length;
    const subscriptions = this.controller.inputs.map((input) =>
      this.#options.feeds.subscribe(input, {
        change: (change) => this.#change(input, change),
        // A former parent may be among what was left out, and nobody knows which one that is.
        resync: (how) => (how === 'lost' || input.kind === 'mapped' ? this.#wakeAll() : undefined),
        synced: () => (--missing === 0 ? synced() : undefined),
      }),
    );
    const plain = this.#context(signal, hardSignal);
    const running: Promise<void>[] = [this.#mapper.run(plain)];
    for (let count = 0; count < (this.controller.concurrency ?? this.#options.concurrency); count++)
      running.push(this.#work(signal, hardSignal));
    if (this.controller.run !== undefined) running.push(this.#runHook(plain));
    await Promise.all(running);
    for (const subscription of subscriptions) subscription[Symbol.dispose]();
  }

  async shutdown(signal: AbortSignal): Promise<void> {
    await this.controller.shutdown?.(this.#context(signal, signal));
  }

  stopTaking(): void {
    this.#queue.shutDown();
    this.#mapper.shutDown();
  }

  inFlight(): readonly string[] {
    const { mapping } = this.#mapper;
    return [
      ...this.#records.running(),
      ...(mapping === undefined ? [] : [`the mapping of ${mapping}`]),
      ...(this.#runHookEnded ? [] : ['the run hook']),
    ];
  }

  status(): ControllerStatus {
    const keys = this.#records.status(
      (key) => this.#queue.dueInMs(key),
      (key) => this.#hotLoops.isHot(key),
    );
    return { name: this.controller.name, queued: this.#queue.length, running: this.#queue.running, keys };
  }

  #change(input: Input, change: FeedChange): void {
    const { old, value, initial } = change;
    const metadata = (value ?? old) as Metadata;
    if (input.id !== undefined && input.id !== metadata.id) return;
    const priority = initial ? initialPriority : 0;
    if (input.kind === 'primary') {
      const key = keyOf(metadata);
      // Back-off and counters belong to an incarnation.
      if (value === undefined) {
        this.#queue.forget(key);
        this.#records.forget(key);
        this.#hotLoops.forget(key);
      } else this.#records.isThere(key);
      return this.#add(key, priority, 0, metadata);
    }
    if (input.kind === 'mappedDestroyReady') {
      if (value !== undefined && !isDestroyReady(value)) return;
      // A state that was not ready never woke anybody.
      if (old !== undefined && value !== undefined && !isDestroyReady(old))
        return this.#mapper.add({ ...change, old: undefined }, priority);
    }
    this.#mapper.add(change, priority);
  }

  #wakeAll(): void {
    for (const { namespace, type, id } of this.#primaries) {
      for (const metadata of this.#options.feeds.known({ namespace, type }))
        if (id === undefined || id === metadata.id) this.#add(keyOf(metadata), initialPriority, 0, undefined);
    }
  }

  #wake(pointer: Pointer, priority: number, afterMs: number, cause: Cause | undefined): void {
    if (this.#primaries.some((input) => covers(input, pointer))) return this.#add(keyOf(pointer), priority, afterMs, cause);
    this.#options.log.log('error', `${pointerText(pointer)} is of no primary input, so it cannot be queued`, {});
  }

  #add(key: string, priority: number, afterMs: number, cause: Cause | undefined): void {
    const slowedDownMs = this.#hotLoops.wake(key, cause, this.#records.isRunning(key));
    this.#instruments.wakeUps.add(1, this.#instruments.labels);
    this.#queue.add(key, { priority, afterMs: Math.max(afterMs, slowedDownMs) });
  }

  async #work(signal: AbortSignal, hardSignal: AbortSignal): Promise<void> {
    let writes = newWriteLog();
    const spans = new RunSpans(this.#options.environment.tracer, this.controller.name);
    const context = this.#context(signal, hardSignal, {
      onWrite: (pointer, version) => {
        writes.count++;
        writes.written.set(keyOf(pointer), version);
      },
      ...(!spans.off && { spanOf: () => spans.span }),
    });
    for (;;) {
      const item = await this.#queue.take(signal);
      if (item === undefined) return;
      const behind = this.#options.cache.caughtUp(this.controller.name, signal);
      if (behind !== undefined) await behind.catch(() => {});
      if (signal.aborted) {
        item.done();
        return;
      }
      writes = newWriteLog();
      await this.#runOne(context, item, writes, spans);
      const pause = this.#options.breather.pause();
      if (pause !== undefined) await pause;
    }
  }

  async #runOne(context: ControllerContext, item: QueueItem, writes: WriteLog, spans: RunSpans): Promise<void> {
    const { environment, log } = this.#options;
    const { labels, queueSeconds, reconcileSeconds } = this.#instruments;
    const { key } = item;
    const record = this.#records.start(key);
    this.#hotLoops.start(key);
    queueSeconds.observe(item.waitedMs / 1000, labels);
    const span = spans.begin(() => aboutRun(record, item));
    const start = environment.elapsed();
    try {
      const result = await span.run(() =>
        this.controller.reconcile(
          {
            ...context,
            span,
            get log() {
              return log.with({ resource: pointerText(record.pointer) });
            },
          },
          { pointer: record.pointer },
        ),
      );
      spans.end(this.#succeeded(item, record, result));
    } catch (error) {
      spans.end(this.#failed(item, record, error, context.signal), error);
    }
    reconcileSeconds.observe((environment.elapsed() - start) / 1000, labels);
    const { becameHot, wakeNow } = this.#hotLoops.end(key, writes);
    this.#records.end(key, { again: this.#queue.dueInMs(key) !== undefined, hot: this.#hotLoops.isHot(key) });
    if (becameHot) {
      this.#instruments.hotLoops.add(1, labels);
      log.log('warn', `${pointerText(record.pointer)} is written again and again without a change of its inputs; it is slowed down`, {});
    }
    if (wakeNow) this.#queue.add(key);
  }

  #succeeded(item: QueueItem, record: KeyRecord, result: ReconcileResult | void): Outcome {
    const afterMs = result?.requeueAfterMs;
    if (afterMs !== undefined && !isDelay(afterMs))
      throw new RangeError(`reconcile answered requeueAfterMs ${afterMs}; expected a finite number from 0`);
    this.#records.succeeded(record, result?.blockedBecause);
    if (afterMs === undefined) {
      item.done();
      return 'done';
    }
    this.#instruments.requeues.add(1, this.#instruments.labels);
    item.requeue(this.#hotLoops.isHot(item.key) ? Math.max(afterMs, slowedMs) : afterMs);
    return 'requeued';
  }

  #failed(item: QueueItem, record: KeyRecord, error: unknown, signal: AbortSignal): Outcome {
    const { failures, requeues, skips, labels } = this.#instruments;
    const { log } = this.#options;
    if (signal.aborted) {
      log.log('debug', `reconciling ${pointerText(record.pointer)} was ended by the stop`, { error });
      item.done();
      return 'stopped';
    }
    const skip = skipOf(error);
    const requeue = skip === undefined ? requeueOf(error) : undefined;
    if (skip !== undefined) {
      skips.add(1, labels);
      this.#records.succeeded(record);
      if (skip.cause !== undefined) log.log('warn', `reconciling ${pointerText(record.pointer)} gave up`, { error: skip.cause });
      item.done();
      return 'skipped';
    }
    if (requeue !== undefined) {
      requeues.add(1, labels);
      if (requeue.cause !== undefined) {
        failures.add(1, labels);
        this.#records.failed(record, requeue.cause);
      }
      item.fail({ afterMs: this.#hotLoops.isHot(item.key) ? Math.max(requeue.afterMs, slowedMs) : requeue.afterMs });
      return requeue.cause === undefined ? 'requeued' : 'failed';
    }
    failures.add(1, labels);
    this.#records.failed(record, error);
    item.fail();
    return 'failed';
  }

  async #runHook(context: ControllerContext): Promise<void> {
    const hook = { ...context, wake: (pointer: Pointer) => this.#wake(pointer, 0, 0, undefined) };
    this.#runHookEnded = false;
    await keepRunning({
      environment: this.#options.environment,
      log: this.#options.log,
      signal: context.signal,
      what: 'the run hook',
      run: async () => this.controller.run?.(hook),
    });
    this.#runHookEnded = true;
  }

  #context(signal: AbortSignal, hardSignal: AbortSignal, more: Pick<ContextOptions, 'onWrite' | 'spanOf'> = {}): ControllerContext {
    return controllerContext({
      ...contextOptions({ name: this.controller.name, limits: this.#limits, instruments: this.#instruments }, this.#options),
      signal,
      hardSignal,
      ...more,
    });
  }
}

/** What the span of a run tells of its key. */
function aboutRun({ pointer, failures }: KeyRecord, { waitedMs }: QueueItem): SpanAttributes {
  return {
    'steadystate.namespace': pointer.namespace,
    'steadystate.type': pointer.type,
    'steadystate.id': pointer.id,
    'steadystate.failures': failures,
    'steadystate.waited_ms': waitedMs,
  };
}

function isDestroyReady({ phase, finalizers }: Metadata): boolean {
  return phase === 'tearingDown' && finalizers.length === 0;
}
