import type { Environment, Logger } from '../environment/index.ts';
import type { KeyedQueue, QueueOptions } from '../queue/index.ts';
import { createQueue } from '../queue/index.ts';
import type { Metadata, Pointer } from '../resource/index.ts';
import { pointerText, sameSet, sameValue } from '../resource/index.ts';
import type { Breather } from './breather.ts';
import type { ControllerContext, MappedInput, QueueController } from './controller.ts';
import { keyOf, pointerOfKey } from './keys.ts';
import type { FeedChange } from './kind-feed.ts';

/** More states of one resource than these are not kept for the mapper: every primary is queued instead. */
const maxStates = 64;

interface Job {
  readonly inputs: MappedInput[];
  priority: number;
}

export interface InputMapperOptions {
  readonly controller: QueueController;
  readonly environment: Environment;
  readonly log: Logger;
  readonly queueOptions: QueueOptions;
  readonly breather: Breather;
  /** A primary is to run because of a mapped input. */
  readonly wake: (pointer: Pointer, priority: number, afterMs: number, cause: Metadata) => void;
  /** It is not known any more which primaries are to run. */
  readonly wakeAll: () => void;
}

/** Turns changes of mapped inputs into primary keys, outside the watch that told of them. */
export class InputMapper {
  readonly #options: InputMapperOptions;
  readonly #queue: KeyedQueue;
  readonly #jobs = new Map<string, Job>();
  #mapping: string | undefined;

  constructor(options: InputMapperOptions) {
    this.#options = options;
    this.#queue = createQueue(options.environment, options.queueOptions);
  }

  /** What is being mapped now. */
  get mapping(): string | undefined {
    return this.#mapping;
  }

  get length(): number {
    return this.#queue.length;
  }

  /** On an update both the old and the new state are mapped, so that a former parent wakes too. */
  add({ old, value }: FeedChange, priority: number): void {
    const { metadata, destroyed } =
      value === undefined ? { metadata: old as Metadata, destroyed: true } : { metadata: value, destroyed: false };
    const key = keyOf(metadata);
    let job = this.#jobs.get(key);
    if (job === undefined) {
      job = { inputs: [], priority };
      this.#jobs.set(key, job);
    }
    job.priority = Math.max(job.priority, priority);
    if (old !== undefined && value !== undefined) note(job.inputs, { metadata: old, destroyed: false });
    note(job.inputs, { metadata, destroyed });
    if (job.inputs.length > maxStates) {
      job.inputs.splice(0, job.inputs.length - 1);
      this.#options.wakeAll();
    }
    this.#queue.add(key, { priority });
  }

  async run(context: ControllerContext): Promise<void> {
    const { signal } = context;
    for (let item = await this.#queue.take(signal); item !== undefined; item = await this.#queue.take(signal)) {
      const job = this.#jobs.get(item.key);
      this.#jobs.delete(item.key);
      this.#mapping = pointerText(pointerOfKey(item.key));
      const failure = job === undefined || signal.aborted ? undefined : await this.#map(context, job);
      this.#mapping = undefined;
      if (job === undefined || failure === undefined || signal.aborted) item.done();
      else {
        this.#putBack(item.key, job);
        item.fail();
      }
      await this.#options.breather.pause();
    }
  }

  shutDown(): void {
    this.#queue.shutDown();
    this.#jobs.clear();
  }

  async #map(context: ControllerContext, job: Job): Promise<{ readonly error: unknown } | undefined> {
    const { controller, wake, log } = this.#options;
    try {
      for (const input of job.inputs) {
        const pointers = (await controller.mapInput?.(context, input)) ?? [];
        for (const pointer of pointers) wake(pointer, job.priority, controller.mappedDelayMs?.(pointer) ?? 0, input.metadata);
      }
      return undefined;
    } catch (error) {
      if (!context.signal.aborted) log.log('warn', `mapping ${this.#mapping} failed; trying again`, { error });
      return { error };
    }
  }

  /** What came meanwhile goes behind what is tried again. */
  #putBack(key: string, job: Job): void {
    const later = this.#jobs.get(key);
    if (later !== undefined) {
      job.priority = Math.max(job.priority, later.priority);
      for (const input of later.inputs) note(job.inputs, input);
    }
    this.#jobs.set(key, job);
  }
}

/** Keeps one entry for what is mapped alike, the newest. */
function note(inputs: MappedInput[], input: MappedInput): void {
  const place = inputs.findIndex((other) => isMappedAlike(other.metadata, input.metadata));
  if (place >= 0) inputs.splice(place, 1);
  inputs.push(input);
}

/** All that a mapper sees but version and times. */
function isMappedAlike(left: Metadata, right: Metadata): boolean {
  return (
    left.uid === right.uid &&
    left.owner === right.owner &&
    left.phase === right.phase &&
    sameSet(left.finalizers, right.finalizers) &&
    sameValue(left.labels, right.labels) &&
    sameValue(left.annotations, right.annotations)
  );
}
