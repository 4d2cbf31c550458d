import { strict as assert } from 'node:assert';
import type { Environment } from '../../environment/index.ts';
import type { EventStream, StateEvent } from '../../state/index.ts';

/** Reads a watch in a test: every wait has a limit, so that a lost event fails and does not hang. */
export class Reader<Item extends StateEvent | readonly StateEvent[] = StateEvent> implements AsyncDisposable {
  readonly #iterator: AsyncIterator<Item, undefined, undefined>;
  readonly #stream: EventStream<Item>;
  readonly #environment: Environment;
  readonly #limitMs: number;
  #buffer: StateEvent[] = [];

  constructor(stream: EventStream<Item>, environment: Environment, limitMs: number) {
    this.#stream = stream;
    this.#iterator = stream[Symbol.asyncIterator]();
    this.#environment = environment;
    this.#limitMs = limitMs;
  }

  /** The next event; fails when the watch has ended or nothing comes. */
  async next(awaited = 'an event'): Promise<StateEvent> {
    const event = await this.#pull(awaited);
    if (event === undefined) assert.fail(`the watch ended, expected ${awaited}`);
    return event;
  }

  async take(count: number): Promise<StateEvent[]> {
    const events: StateEvent[] = [];
    while (events.length < count) events.push(await this.next(`event ${events.length + 1} of ${count} after ${brief(events).join(', ')}`));
    return events;
  }

  /** Everything up to the first event that passes, which is the last one. */
  async takeUntil(test: (event: StateEvent) => boolean, awaited = 'the last event of a stretch'): Promise<StateEvent[]> {
    const events: StateEvent[] = [];
    for (;;) {
      const event = await this.next(`${awaited} after ${brief(events.slice(-5)).join(', ')}`);
      events.push(event);
      if (event.type === 'errored') assert.fail(`the watch failed: ${event.error.message}`);
      if (test(event)) return events;
    }
  }

  /** What comes before the event of one resource, which a case writes last to see that nothing else came. */
  async takeBefore(id: string): Promise<StateEvent[]> {
    const events = await this.takeUntil((event) => idOf(event) === id, `the event of ${id}`);
    return events.slice(0, -1);
  }

  /** Everything until the watch ends. */
  async rest(): Promise<StateEvent[]> {
    const events: StateEvent[] = [];
    for (let event = await this.#pull('the end'); event !== undefined; event = await this.#pull('the end')) events.push(event);
    return events;
  }

  async expectEnd(): Promise<void> {
    assert.deepEqual(brief(await this.rest()), []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stream[Symbol.asyncDispose]();
  }

  async #pull(awaited: string): Promise<StateEvent | undefined> {
    while (this.#buffer.length === 0) {
      const { value, done } = await within(this.#environment, this.#limitMs, this.#iterator.next(), awaited);
      if (done === true) return undefined;
      const batch: readonly StateEvent[] = Array.isArray(value) ? value : [value as StateEvent];
      assert.ok(batch.length > 0, 'a batch must not be empty');
      this.#buffer = [...batch];
    }
    return this.#buffer.shift();
  }
}

/** The promise, or a failure after the limit. */
export async function within<Value>(environment: Environment, limitMs: number, promise: Promise<Value>, awaited: string): Promise<Value> {
  let timer: Disposable | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = environment.after(limitMs, () =>
      reject(new assert.AssertionError({ message: `nothing came within ${limitMs} ms, expected ${awaited}` })),
    );
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    timer?.[Symbol.dispose]();
  }
}

/** The id that an event is about. */
export function idOf(event: StateEvent): string | undefined {
  return 'resource' in event ? event.resource.metadata.id : undefined;
}

/** Events as short text: `created a`, `bootstrapped`. */
export function brief(events: readonly StateEvent[]): string[] {
  return events.map((event) => ('resource' in event ? `${event.type} ${event.resource.metadata.id}` : event.type));
}
