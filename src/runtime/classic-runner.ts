import type { Kind, Metadata, Pointer } from '../resource/index.ts';
import { invalid, thrownText } from '../resource/index.ts';
import { AccessLimits } from './access.ts';
import type { ContextOptions } from './context.ts';
import { controllerContext } from './context.ts';
import type { ClassicContext, ClassicController, Input } from './controller.ts';
import { Instruments } from './instruments.ts';
import { kindKeyOf } from './keys.ts';
import type { FeedChange } from './kind-feed.ts';
import { checkTrackedKinds, OutputTracker } from './output-tracker.ts';
import { inputsProblem } from './registration.ts';
import { keepRunning, RestartBackoff } from './run-hook.ts';
import { RunSpans } from './run-spans.ts';
import type { Runner, RunnerOptions } from './runner.ts';
import { contextOptions } from './runner.ts';
import type { ControllerStatus } from './runtime.ts';
import { WakeUp } from './wake-up.ts';

/** Runs one classic controller: one logical thread, started again when it fails. */
export class ClassicRunner implements Runner {
  readonly controller: ClassicController;
  readonly #options: RunnerOptions;
  readonly #limits: AccessLimits;
  readonly #instruments: Instruments;
  readonly #backoff: RestartBackoff;
  readonly #tracker = new OutputTracker();
  readonly #subscriptions = new Map<string, Disposable>();
  /** Inputs whose contents have not all been told. */
  readonly #unsynced = new Set<string>();
  #synced = (): void => {};
  #wakeUp: WakeUp | undefined;
  #runs = false;
  #failures = 0;
  #lastError: string | undefined;
  #failingSince: string | undefined;

  constructor(controller: ClassicController, options: RunnerOptions) {
    this.controller = controller;
    this.#options = options;
    this.#limits = new AccessLimits(controller.name, controller.inputs, controller.outputs);
    this.#instruments = new Instruments(options.environment, controller.name);
    this.#backoff = new RestartBackoff(options.environment);
  }

  async run(signal: AbortSignal, hardSignal: AbortSignal, synced: () => void): Promise<void> {
    const { environment, log } = this.#options;
    this.#synced = once(synced);
    this.#setInputs(this.controller.inputs);
    this.#runs = true;
    await keepRunning({
      environment,
      log,
      signal,
      what: 'the controller',
      backoff: this.#backoff,
      run: () => this.#start(signal, hardSignal),
      onFailure: (error) => this.#failed(error),
    });
    this.#runs = false;
    for (const subscription of this.#subscriptions.values()) subscription[Symbol.dispose]();
    this.#subscriptions.clear();
    // A controller that has finished waits for nothing any more.
    this.#synced();
  }

  async shutdown(signal: AbortSignal): Promise<void> {
    await this.controller.shutdown?.(controllerContext(this.#contextOptions(signal, signal)));
  }

  stopTaking(): void {}

  inFlight(): readonly string[] {
    return this.#runs ? ['its run'] : [];
  }

  status(): ControllerStatus {
    return {
      name: this.controller.name,
      queued: 0,
      running: this.#runs ? 1 : 0,
      keys: [],
      ...(this.#lastError !== undefined && { failures: this.#failures, lastError: this.#lastError }),
      ...(this.#failingSince !== undefined && { failingSince: this.#failingSince }),
    };
  }

  /** One run, from a fresh start. */
  async #start(signal: AbortSignal, hardSignal: AbortSignal): Promise<void> {
    this.#setInputs(this.controller.inputs);
    this.#tracker.stop();
    const wakeUp = new WakeUp(signal);
    const spans = new RunSpans(this.#options.environment.tracer, this.controller.name);
    this.#wakeUp = wakeUp;
    wakeUp.wake();
    try {
      await this.controller.run(this.#context(signal, hardSignal, wakeUp, spans));
    } catch (error) {
      spans.end(signal.aborted ? 'stopped' : 'failed', error);
      throw error;
    } finally {
      spans.end('done');
      wakeUp.close();
    }
  }

  #context(signal: AbortSignal, hardSignal: AbortSignal, wakeUp: WakeUp, spans: RunSpans): ClassicContext {
    const base = controllerContext({ ...this.#contextOptions(signal, hardSignal), ...(!spans.off && { spanOf: () => spans.span }) });
    return {
      ...base,
      get span() {
        return spans.span;
      },
      nextWakeUp: async () => {
        // One run is from a wake-up to the next.
        spans.end('done');
        if (!(await wakeUp.next())) return false;
        await this.#options.breather.pause();
        await this.#options.cache.caughtUp(this.controller.name, signal)?.catch(() => {});
        if (signal.aborted) return false;
        spans.begin(() => ({}));
        return true;
      },
      queueReconcile: () => wakeUp.wake(),
      updateInputs: (inputs) => {
        const problem = inputsProblem(this.controller, inputs, this.#options.core);
        if (problem !== undefined) throw invalid([{ path: `controller ${this.controller.name}`, message: problem }]);
        if (this.#setInputs(inputs)) wakeUp.wake();
      },
      resetRestartBackoff: () => {
        this.#backoff.reset();
        this.#failures = 0;
        this.#lastError = undefined;
        this.#failingSince = undefined;
      },
      startTrackingOutputs: () => this.#tracker.start(),
      cleanupOutputs: async (...kinds) => {
        checkTrackedKinds(kinds, (type) => this.#limits.isOutput(type));
        for (const kind of kinds) this.#track(kind);
        await this.#tracker.cleanUp(base, kinds);
      },
    };
  }

  #contextOptions(signal: AbortSignal, hardSignal: AbortSignal): ContextOptions {
    return {
      ...contextOptions({ name: this.controller.name, limits: this.#limits, instruments: this.#instruments }, this.#options),
      signal,
      hardSignal,
      onAttempt: (pointer: Pointer, attempt: Promise<unknown>) => this.#tracker.touch(pointer, attempt),
    };
  }

  /** Answers whether an input was added. */
  #setInputs(inputs: readonly Input[]): boolean {
    const wanted = new Map(inputs.map((input) => [JSON.stringify([input.kind, input.namespace, input.type, input.id ?? null]), input]));
    this.#limits.inputs = inputs;
    for (const [key, subscription] of this.#subscriptions) {
      if (wanted.has(key) || key.startsWith(trackedMark)) continue;
      subscription[Symbol.dispose]();
      this.#subscriptions.delete(key);
      this.#unsynced.delete(key);
    }
    let added = false;
    for (const key of wanted.keys()) {
      if (this.#subscriptions.has(key)) continue;
      added = true;
      // It may be there at once.
      this.#unsynced.add(key);
    }
    for (const [key, input] of wanted) if (!this.#subscriptions.has(key)) this.#subscribe(key, input);
    this.#checkSynced();
    return added;
  }

  /** A kind that is being tracked is an input too: what is torn down is destroyed once nothing holds it. */
  #track({ namespace, type }: Kind): void {
    const key = `${trackedMark}${kindKeyOf({ namespace, type })}`;
    if (this.#subscriptions.has(key)) return;
    this.#subscribe(key, { namespace, type, kind: 'destroyReady' });
  }

  #subscribe(key: string, input: Input): void {
    const subscription = this.#options.feeds.subscribe(input, {
      change: (change) => {
        if (wakes(input, change)) this.#wake();
      },
      resync: () => this.#wake(),
      synced: () => {
        if (this.#unsynced.delete(key)) this.#checkSynced();
      },
    });
    this.#subscriptions.set(key, subscription);
  }

  #checkSynced(): void {
    if (this.#unsynced.size === 0) this.#synced();
  }

  #wake(): void {
    this.#instruments.wakeUps.add(1, this.#instruments.labels);
    this.#wakeUp?.wake();
  }

  #failed(error: unknown): void {
    this.#instruments.failures.add(1, this.#instruments.labels);
    this.#failures++;
    this.#lastError = thrownText(error);
    this.#failingSince ??= this.#options.environment.timestamp();
  }
}

function once(callback: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    callback();
  };
}

const trackedMark = 'tracked:';

function wakes(input: Input, { old, value }: FeedChange): boolean {
  const metadata = (value ?? old) as Metadata;
  if (input.id !== undefined && input.id !== metadata.id) return false;
  if (input.kind !== 'destroyReady' || value === undefined) return true;
  return value.phase === 'tearingDown' && value.finalizers.length === 0;
}
