import type { Environment, Logger } from '../environment/index.ts';
import type { KeyedQueue } from '../queue/index.ts';
import { createQueue } from '../queue/index.ts';
import type { Metadata, Pointer } from '../resource/index.ts';
import { pointerText, sameValue } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { AccessLimits } from './access.ts';
import { controllerContext } from './context.ts';
import type { ControllerContext, Input, MappedInput, QueueController } from './controller.ts';
import type { FeedChange, FeedSubscriber } from './kind-feed.ts';
import { RequeueError, SkipError } from './run-errors.ts';
import type { ControllerStatus, KeyStatus } from './runtime.ts';

/** What is there at the start runs after what changes. */
const initialPriority = -100;
/** A key that wrote in this many runs in a row … */
const hotRuns = 100;
/** … within this time is slowed down, milliseconds. */
const hotWindowMs = 5_000;
const hotDelayMs = 1_000;
/** Workers give way to timers and input after this long, milliseconds. */
const breathAfterMs = 5;

interface KeyRecord {
  readonly pointer: Pointer;
  uid: string | undefined;
  failures: number;
  lastError: string | undefined;
  /** Wall clock, when the present row of failures began. */
  failingSince: string | undefined;
  writes: number;
  hotSince: number;
  hotCount: number;
}

interface MappedJob {
  readonly inputs: MappedInput[];
  initial: boolean;
}

/** Runs one queue controller. */
export class QueueRunner {
  readonly controller: QueueController;
  readonly #environment: Environment;
  readonly #core: CoreState;
  readonly #log: Logger;
  readonly #limits: AccessLimits;
  readonly #queue: KeyedQueue;
  readonly #mapQueue: KeyedQueue;
  readonly #records = new Map<string, KeyRecord>();
  readonly #jobs = new Map<string, MappedJob>();
  readonly #running = new Map<string, { readonly since: number }>();
  readonly #primaries: readonly Input[];
  #lastBreath = 0;

  constructor(
    controller: QueueController,
    options: {
      readonly environment: Environment;
      readonly core: CoreState;
      readonly log: Logger;
      readonly maxBackoffMs?: number | undefined;
    },
  ) {
    this.controller = controller;
    this.#environment = options.environment;
    this.#core = options.core;
    this.#log = options.log.with({ controller: controller.name });
    this.#limits = new AccessLimits(controller.name, controller.inputs, controller.outputs);
    const queueOptions = options.maxBackoffMs === undefined ? {} : { maxDelayMs: options.maxBackoffMs };
    this.#queue = createQueue(options.environment, queueOptions);
    this.#mapQueue = createQueue(options.environment, queueOptions);
    this.#primaries = controller.inputs.filter((input) => input.kind === 'primary');
  }

  /** What one input's feed has to be told to. */
  subscriber(input: Input, synced: () => void): FeedSubscriber {
    const wanted = (change: FeedChange): boolean => input.id === undefined || (change.value ?? change.old)?.metadata.id === input.id;
    return {
      change: (change) => {
        if (!wanted(change)) return;
        if (input.kind === 'primary') this.#primaryChanged(change);
        else this.#mappedChanged(input, change);
      },
      resync: () => {
        if (input.kind !== 'primary') return;
        for (const [key, record] of this.#records)
          if (record.pointer.type === input.type && record.pointer.namespace === input.namespace) this.#add(key, initialPriority);
      },
      synced,
    };
  }

  /** Runs until the signal aborts and what was in flight has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const workers: Promise<void>[] = [];
    for (let count = 0; count < (this.controller.concurrency ?? 1); count++) workers.push(this.#work(signal));
    workers.push(this.#mapWork(signal));
    if (this.controller.run !== undefined) workers.push(this.#runHook(signal));
    await Promise.all(workers);
    if (this.controller.shutdown === undefined) return;
    try {
      await this.controller.shutdown(this.#context(new AbortController().signal, undefined));
    } catch (error) {
      this.#log.log('error', 'the shutdown hook failed', { error });
    }
  }

  shutDown(): void {
    this.#queue.shutDown();
    this.#mapQueue.shutDown();
  }

  /** Keys that are being reconciled now. */
  inFlight(): readonly string[] {
    return [...this.#running.keys()].map((key) => pointerText(fromKey(key)));
  }

  wake(pointer: Pointer): void {
    this.#enqueue(pointer, 0);
  }

  status(): ControllerStatus {
    const keys: KeyStatus[] = [];
    for (const [key, record] of this.#records) {
      const nextRunInMs = this.#queue.dueInMs(key);
      if (record.failures === 0 && !this.#running.has(key) && nextRunInMs === undefined) continue;
      keys.push({
        pointer: record.pointer,
        running: this.#running.has(key),
        failures: record.failures,
        ...(record.lastError !== undefined && { lastError: record.lastError }),
        ...(record.failingSince !== undefined && { failingSince: record.failingSince }),
        ...(nextRunInMs !== undefined && { nextRunInMs }),
      });
    }
    return { name: this.controller.name, queued: this.#queue.length, running: this.#queue.running, keys };
  }

  #primaryChanged({ old, value, initial }: FeedChange): void {
    const { metadata } = (value ?? old) as { metadata: Metadata };
    const key = toKey(metadata);
    const record = this.#record(key, metadata);
    // Back-off and counters belong to an incarnation.
    if (value === undefined || (record.uid !== undefined && record.uid !== value.metadata.uid)) {
      this.#queue.forget(key);
      record.failures = 0;
      record.lastError = undefined;
      record.failingSince = undefined;
      record.hotCount = 0;
    }
    record.uid = value?.metadata.uid;
    this.#add(key, initial ? initialPriority : 0);
  }

  #mappedChanged(input: Input, { old, value, initial }: FeedChange): void {
    const { metadata } = (value ?? old) as { metadata: Metadata };
    if (
      input.kind === 'mappedDestroyReady' &&
      value !== undefined &&
      !(value.metadata.phase === 'tearingDown' && value.metadata.finalizers.length === 0)
    )
      return;
    const key = toKey(metadata);
    let job = this.#jobs.get(key);
    if (job === undefined) {
      job = { inputs: [], initial };
      this.#jobs.set(key, job);
    }
    job.initial &&= initial;
    // A former parent has to wake too, so the old value is mapped beside the new one where they could differ.
    if (old !== undefined && value !== undefined && !samePlace(old.metadata, value.metadata))
      note(job.inputs, { metadata: old.metadata, destroyed: false });
    note(job.inputs, { metadata, destroyed: value === undefined });
    this.#mapQueue.add(key, { priority: initial ? initialPriority : 0 });
  }

  #record(key: string, pointer: Pointer): KeyRecord {
    let record = this.#records.get(key);
    if (record === undefined) {
      const { namespace, type, id } = pointer;
      record = {
        pointer: { namespace, type, id },
        uid: undefined,
        failures: 0,
        lastError: undefined,
        failingSince: undefined,
        writes: 0,
        hotSince: 0,
        hotCount: 0,
      };
      this.#records.set(key, record);
    }
    return record;
  }

  #enqueue(pointer: Pointer, priority: number, afterMs = 0): void {
    if (!this.#primaries.some((input) => input.type === pointer.type && input.namespace === pointer.namespace)) {
      this.#log.log('error', `${pointerText(pointer)} is not of a primary input, so it cannot be queued`, {});
      return;
    }
    const key = toKey(pointer);
    this.#record(key, pointer);
    this.#add(key, priority, afterMs);
  }

  #add(key: string, priority: number, afterMs = 0): void {
    const record = this.#records.get(key);
    if (record !== undefined && record.hotCount >= hotRuns) {
      record.hotCount = hotRuns / 2;
      this.#log.log('warn', `${pointerText(record.pointer)} is written again and again; it is slowed down`, {});
      this.#environment.metrics
        .counter('steadystate_controller_hot_loops_total', 'Keys that were slowed down')
        .add(1, { controller: this.controller.name });
      this.#queue.add(key, { priority, afterMs: hotDelayMs });
    } else this.#queue.add(key, { priority, afterMs });
  }

  async #work(signal: AbortSignal): Promise<void> {
    const labels = { controller: this.controller.name };
    const { metrics } = this.#environment;
    const seconds = metrics.histogram('steadystate_controller_reconcile_seconds', 'Duration of reconciles');
    const failures = metrics.counter('steadystate_controller_failures_total', 'Reconciles that failed');
    for (let item = await this.#queue.take(signal); item !== undefined; item = await this.#queue.take(signal)) {
      const { key } = item;
      const record = this.#record(key, fromKey(key));
      const start = this.#environment.elapsed();
      this.#running.set(key, { since: start });
      record.writes = 0;
      try {
        const result = await this.controller.reconcile(this.#context(signal, record), { pointer: record.pointer });
        this.#succeeded(record);
        if (result?.requeueAfterMs !== undefined) item.requeue(result.requeueAfterMs);
        else item.done();
      } catch (error) {
        if (signal.aborted) item.done();
        else if (error instanceof SkipError) {
          this.#succeeded(record);
          item.done();
        } else if (error instanceof RequeueError) {
          if (error.cause !== undefined) this.#failed(record, error.cause);
          item.fail({ afterMs: error.afterMs });
        } else {
          failures.add(1, labels);
          this.#failed(record, error);
          item.fail();
        }
      }
      this.#running.delete(key);
      seconds.observe((this.#environment.elapsed() - start) / 1000, labels);
      this.#countHot(record, start);
      if (record.uid === undefined && record.failures === 0) this.#records.delete(key);
      await this.#breathe();
    }
  }

  /** Timers and input get their turn between reconciles. */
  async #breathe(): Promise<void> {
    if (this.#environment.elapsed() - this.#lastBreath < breathAfterMs) return;
    await this.#environment.breathe();
    this.#lastBreath = this.#environment.elapsed();
  }

  #succeeded(record: KeyRecord): void {
    record.failures = 0;
    record.lastError = undefined;
    record.failingSince = undefined;
  }

  #failed(record: KeyRecord, error: unknown): void {
    record.failures++;
    record.failingSince ??= this.#environment.timestamp();
    record.lastError = error instanceof Error ? error.message : String(error);
    this.#log.log('warn', `reconciling ${pointerText(record.pointer)} failed`, { error, failures: record.failures });
  }

  #countHot(record: KeyRecord, start: number): void {
    if (record.writes === 0 || start - record.hotSince > hotWindowMs) {
      record.hotSince = start;
      record.hotCount = record.writes === 0 ? 0 : 1;
    } else record.hotCount++;
  }

  async #mapWork(signal: AbortSignal): Promise<void> {
    for (let item = await this.#mapQueue.take(signal); item !== undefined; item = await this.#mapQueue.take(signal)) {
      const job = this.#jobs.get(item.key);
      if (job === undefined) {
        item.done();
        continue;
      }
      this.#jobs.delete(item.key);
      try {
        for (const input of job.inputs) {
          for (const pointer of (await this.controller.mapInput?.(this.#context(signal, undefined), input)) ?? []) {
            this.#enqueue(pointer, job.initial ? initialPriority : 0, this.controller.mappedDelayMs?.(pointer));
          }
        }
        item.done();
      } catch (error) {
        if (signal.aborted) {
          item.done();
          continue;
        }
        this.#log.log('warn', `mapping ${pointerText(fromKey(item.key))} failed; trying again`, { error });
        // What came meanwhile goes behind what is tried again.
        const later = this.#jobs.get(item.key);
        this.#jobs.set(
          item.key,
          later === undefined ? job : { inputs: [...job.inputs, ...later.inputs], initial: job.initial && later.initial },
        );
        item.fail();
      }
      await this.#breathe();
    }
  }

  async #runHook(signal: AbortSignal): Promise<void> {
    let delayMs = 500;
    while (!signal.aborted) {
      const start = this.#environment.elapsed();
      try {
        await this.controller.run?.({ ...this.#context(signal, undefined), wake: (pointer) => this.#enqueue(pointer, 0) });
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#environment.elapsed() - start > 60_000) delayMs = 500;
        this.#log.log('warn', 'the run hook failed; starting it again', { error, delayMs });
        await this.#environment.sleep(delayMs * (0.5 + this.#environment.random()), signal).catch(() => {});
        delayMs = Math.min(delayMs * 1.5, 60_000);
      }
    }
  }

  #context(signal: AbortSignal, record: KeyRecord | undefined): ControllerContext {
    const labels = { controller: this.controller.name };
    const { metrics } = this.#environment;
    const reads = metrics.counter('steadystate_controller_reads_total', 'Reads of controllers');
    const writes = metrics.counter('steadystate_controller_writes_total', 'Writes of controllers');
    return controllerContext({
      name: this.controller.name,
      core: this.#core,
      environment: this.#environment,
      limits: this.#limits,
      log: record === undefined ? this.#log : this.#log.with({ resource: pointerText(record.pointer) }),
      signal,
      counters: {
        read: () => reads.add(1, labels),
        write: () => {
          writes.add(1, labels);
          if (record !== undefined) record.writes++;
        },
      },
    });
  }
}

/** Whether two states of one resource are mapped alike as far as metadata tells. */
function samePlace(left: Metadata, right: Metadata): boolean {
  return left.uid === right.uid && sameValue(left.labels, right.labels) && sameValue(left.annotations, right.annotations);
}

/** Keeps one entry for what is mapped alike, the newest. */
function note(inputs: MappedInput[], input: MappedInput): void {
  const place = inputs.findIndex((other) => samePlace(other.metadata, input.metadata));
  if (place >= 0) inputs.splice(place, 1);
  inputs.push(input);
}

function toKey({ namespace, type, id }: Pointer): string {
  return `${namespace}\u0000${type}\u0000${id}`;
}

function fromKey(key: string): Pointer {
  const [namespace = '', type = '', id = ''] = key.split('\u0000');
  return { namespace, type, id };
}
