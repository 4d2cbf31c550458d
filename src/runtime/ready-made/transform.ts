import type { Metadata, Pointer, Resource, ResourceQuery } from '../../resource/index.ts';
import { compileQuery, pointerOf } from '../../resource/index.ts';
import type { ClassicContext, ClassicController, Input } from '../controller.ts';
import { throwFailures } from '../each-of.ts';
import { keyOf } from '../keys.ts';
import { skipOf } from '../run-errors.ts';
import { takeDown } from './take-down.ts';
import { isDestroyOutputError } from './transform-errors.ts';
import type { TransformSettings } from './transform-options.ts';
import { isPhaseConflictOf, mappedOutput, unmappedInput } from './transform-options.ts';

export interface ClassicTransformSettings<In, Out> extends TransformSettings<In, Out> {
  /** Holds each input by a finalizer until its output is gone. @default false */
  readonly inputFinalizers?: boolean;
  /** Only these inputs. */
  readonly inputQuery?: ResourceQuery;
  /** An input that is being torn down has no output; without this, and without finalizers, it is as any other. @default false */
  readonly ignoreTearingDownInputs?: boolean;
  /** Further inputs that wake the controller, and that its functions read. */
  readonly extraInputs?: readonly Input[];
  /** A further source of wake-ups; called at each start, ends with the signal. */
  readonly wakeOn?: (wake: () => void, signal: AbortSignal) => void;
}

/** A classic controller that keeps one output for each input, looking at all of them whenever something changed. */
export function transform<In, Out>(settings: ClassicTransformSettings<In, Out>): ClassicController {
  const {
    name,
    input,
    output,
    inputFinalizers = false,
    extraInputs = [],
    extraOutputs = [],
    outputKind = 'exclusive',
    shutdown,
  } = settings;
  return {
    name,
    inputs: [
      { namespace: input.namespace, type: input.type, kind: inputFinalizers ? 'strong' : 'weak' },
      { namespace: output.namespace, type: output.type, kind: 'destroyReady' },
      ...extraInputs,
    ],
    outputs: [{ type: output.type, kind: outputKind }, ...extraOutputs],
    async run(context) {
      settings.wakeOn?.(() => context.queueReconcile(), context.signal);
      while (await context.nextWakeUp()) {
        await new Cycle(settings, context).run();
        context.resetRestartBackoff();
      }
    },
    ...(shutdown && { shutdown: (context) => shutdown.call(settings, context) }),
  };
}

/** One look at everything. */
class Cycle<In, Out> {
  readonly #settings: ClassicTransformSettings<In, Out>;
  readonly #context: ClassicContext;
  /** Outputs that are to be there, also where the attempt to write them failed. */
  readonly #wanted = new Set<string>();
  readonly #failures: unknown[] = [];

  constructor(settings: ClassicTransformSettings<In, Out>, context: ClassicContext) {
    this.#settings = settings;
    this.#context = context;
  }

  async run(): Promise<void> {
    const { input, inputQuery = {} } = this.#settings;
    // All of them: one that does not match any more may have to be let go.
    const { items } = await this.#context.list(input);
    const matches = compileQuery(inputQuery) ?? (() => true);
    const released: Resource<In>[] = [];
    for (const each of items) {
      if (!matches(each.metadata) || !(await this.#attempt(() => this.#keep(each), true))) released.push(each);
    }
    const held = await this.#takeDownOthers();
    for (const each of released) {
      if (!held.has(keyOf(each.metadata))) await this.#attempt(() => this.#letGo(each), true);
    }
    throwFailures(this.#failures);
  }

  /** An item that fails does not keep the others from theirs. */
  async #attempt(work: () => Promise<boolean>, otherwise: boolean): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      this.#failures.push(error);
      return otherwise;
    }
  }

  /** Answers whether the input is to have an output. */
  async #keep(input: Resource<In>): Promise<boolean> {
    const { name, inputFinalizers = false, ignoreTearingDownInputs = false } = this.#settings;
    const { metadata } = input;
    if (metadata.phase === 'tearingDown' && (inputFinalizers || ignoreTearingDownInputs)) return false;
    const wanted = mappedOutput(this.#settings, input);
    if (wanted === undefined) return false;
    const output = pointerOf(wanted) as Pointer<Out>;
    const key = keyOf(output);
    this.#wanted.add(key);
    try {
      if (inputFinalizers && !metadata.finalizers.includes(name)) await this.#context.addFinalizer(metadata, name);
      await this.#settings.before?.(this.#context, input);
      const written = await this.#context.modify(wanted, (draft) => this.#settings.transform(this.#context, input, draft));
      await this.#settings.after?.(this.#context, input, written);
      return true;
    } catch (error) {
      if (isDestroyOutputError(error)) {
        // It stays held: letting it go would wake us, to hold it once more.
        this.#wanted.delete(key);
        return true;
      }
      // What is being torn down is made anew once it is gone; an item that was given up stays as it is.
      if (isPhaseConflictOf(error, output) || skipOf(error) !== undefined) return true;
      throw error;
    }
  }

  /** Takes down what is not wanted; answers the inputs whose outputs are there still. */
  async #takeDownOthers(): Promise<ReadonlySet<string>> {
    const { name, output } = this.#settings;
    const held = new Set<string>();
    const { items } = await this.#context.uncached.list(output);
    for (const { metadata } of items) {
      if (metadata.owner !== name) continue;
      const stays = metadata.phase === 'running' && this.#wanted.has(keyOf(metadata));
      if (stays || !(await this.#attempt(() => takeDown(this.#context, metadata), false))) held.add(this.#inputOf(metadata));
    }
    return held;
  }

  #inputOf(output: Metadata): string {
    return keyOf(unmappedInput(this.#settings, output));
  }

  async #letGo(input: Resource<In>): Promise<boolean> {
    const { name, inputFinalizers = false } = this.#settings;
    if (!inputFinalizers || !input.metadata.finalizers.includes(name)) return true;
    try {
      await this.#settings.finalizerRemoval?.(this.#context, input);
    } catch (error) {
      if (skipOf(error) !== undefined) return true;
      throw error;
    }
    await this.#context.removeFinalizer(input.metadata, name);
    return true;
  }
}
