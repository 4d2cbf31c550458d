import type { Kind, Metadata, Pointer, Resource } from '../../resource/index.ts';
import { isNotFoundError, pointerOf, pointerText } from '../../resource/index.ts';
import type { ControllerContext, Input, QueueController, ReconcileResult } from '../controller.ts';
import { eachOf } from '../each-of.ts';
import { keyOf } from '../keys.ts';
import type { Mapper } from './mappers.ts';
import { OutputIndex } from './output-index.ts';
import { takeDown } from './take-down.ts';
import { isDestroyOutputError } from './transform-errors.ts';
import type { TransformSettings } from './transform-options.ts';
import { find, isPhaseConflictOf, mappedOutput, unmappedInput } from './transform-options.ts';

/** A further input of a queue transform. */
export interface ExtraInput extends Kind {
  readonly id?: string;
  /** @default 'mapped' */
  readonly kind?: 'mapped' | 'mappedDestroyReady';
  readonly map: Mapper;
}

export interface QueueTransformSettings<In, Out> extends TransformSettings<In, Out> {
  /** @default 1 */
  readonly concurrency?: number;
  readonly extraInputs?: readonly ExtraInput[];
  /** The teardown of an input is not looked at until only these finalizers (and our own) are left on it. */
  readonly ignoreTeardownUntil?: readonly string[];
  /** The teardown of an input is not looked at while it has one of these finalizers. */
  readonly ignoreTeardownWhile?: readonly string[];
}

/**
 * A controller that keeps one output for each input. It holds the input by a finalizer, takes the output down when the input
 * goes or its map answers none, and lets the input go last.
 */
export function queueTransform<In, Out>(settings: QueueTransformSettings<In, Out>): QueueController {
  return new QueueTransform(settings).controller();
}

class QueueTransform<In, Out> {
  readonly #settings: QueueTransformSettings<In, Out>;
  readonly #outputs: OutputIndex<In, Out>;

  constructor(settings: QueueTransformSettings<In, Out>) {
    this.#settings = settings;
    this.#outputs = new OutputIndex(settings);
  }

  controller(): QueueController {
    const { name, input, output, concurrency, extraInputs = [], extraOutputs = [], outputKind = 'exclusive', shutdown } = this.#settings;
    const inputs: readonly Input[] = [
      { namespace: input.namespace, type: input.type, kind: 'primary' },
      { namespace: output.namespace, type: output.type, kind: 'mappedDestroyReady' },
      ...extraInputs.map(({ namespace, type, id, kind = 'mapped' }) => ({ namespace, type, kind, ...(id !== undefined && { id }) })),
    ];
    return {
      name,
      inputs,
      outputs: [{ type: output.type, kind: outputKind }, ...extraOutputs],
      ...(concurrency !== undefined && { concurrency }),
      run: (context) => this.#wakeStranded(context),
      reconcile: (context, { pointer }) => this.#reconcile(context, pointer as Pointer<In>),
      mapInput: async (context, changed) => {
        const { metadata } = changed;
        if (isOf(output, metadata)) return metadata.owner === name ? [unmappedInput(this.#settings, metadata)] : [];
        const extra = extraInputs.find((candidate) => isOf(candidate, metadata) && (candidate.id ?? metadata.id) === metadata.id);
        return (await extra?.map(context, changed)) ?? [];
      },
      ...(shutdown && { shutdown: (context: ControllerContext) => shutdown.call(this.#settings, context) }),
    };
  }

  /** Inputs that went while nobody ran wake nobody: their outputs are all that tells of them. */
  async #wakeStranded(context: Parameters<NonNullable<QueueController['run']>>[0]): Promise<void> {
    await this.#outputs.fill(context);
    const { items } = await context.uncached.list(this.#settings.input);
    const there = new Set(items.map(({ metadata }) => keyOf(metadata)));
    for (const input of this.#outputs.inputs()) if (!there.has(keyOf(input))) context.wake(input);
  }

  async #reconcile(context: ControllerContext, pointer: Pointer<In>): Promise<ReconcileResult | void> {
    await this.#outputs.fill(context);
    const input = await find(context, pointer);
    // It went although we held it: what is left of it goes too.
    if (input === undefined) return void (await this.#takeOutputsDown(context, pointer));
    if (input.metadata.phase === 'tearingDown' && !this.#ignoresTeardown(input.metadata)) return this.#letGo(context, input);
    try {
      const wanted = mappedOutput(this.#settings, input);
      if (wanted === undefined) return await this.#letGo(context, input);
      return await this.#keep(context, input, wanted);
    } catch (error) {
      if (!isDestroyOutputError(error)) throw error;
      // It stays held: letting it go would wake us, to hold it once more.
      await this.#takeOutputsDown(context, input.metadata);
    }
  }

  async #keep(
    context: ControllerContext,
    input: Resource<In>,
    wanted: NonNullable<ReturnType<TransformSettings<In, Out>['map']>>,
  ): Promise<ReconcileResult | void> {
    const settings = this.#settings;
    if (!input.metadata.finalizers.includes(settings.name)) {
      // Nobody may begin to hold what is on its way out.
      if (input.metadata.phase === 'tearingDown') return;
      await context.addFinalizer(input.metadata, settings.name);
    }
    const pointer = pointerOf(wanted) as Pointer<Out>;
    await this.#takeOutputsDown(context, input.metadata, pointer);
    await settings.before?.(context, input);
    this.#outputs.add(input.metadata, pointer);
    let written: Resource<Out>;
    try {
      written = await context.modify(wanted, (draft) => settings.transform(context, input, draft));
    } catch (error) {
      if (!isPhaseConflictOf(error, pointer)) throw error;
      // It is being torn down: once it is gone we are woken, and make it anew.
      await this.#takeOutputDown(context, pointer);
      return waitsFor([pointer]);
    }
    await settings.after?.(context, input, written);
  }

  async #letGo(context: ControllerContext, input: Resource<In>): Promise<ReconcileResult | void> {
    const { name } = this.#settings;
    if (!(await this.#takeOutputsDown(context, input.metadata))) return waitsFor(this.#outputs.of(input.metadata));
    if (!input.metadata.finalizers.includes(name)) return;
    await this.#settings.finalizerRemoval?.(context, input);
    await context.removeFinalizer(input.metadata, name);
  }

  /** Takes down all outputs of an input but one; answers whether they are gone. */
  async #takeOutputsDown(context: ControllerContext, input: Pointer, but?: Pointer): Promise<boolean> {
    let gone = true;
    await eachOf(this.#outputs.of(input), async (output) => {
      if (but !== undefined && keyOf(but) === keyOf(output)) return;
      if (await this.#takeOutputDown(context, output)) this.#outputs.remove(input, output);
      else gone = false;
    });
    return gone;
  }

  async #takeOutputDown(context: ControllerContext, pointer: Pointer): Promise<boolean> {
    try {
      const { metadata } = await context.get(pointer);
      // Another made it meanwhile.
      return metadata.owner !== this.#settings.name || (await takeDown(context, metadata));
    } catch (error) {
      if (isNotFoundError(error)) return true;
      throw error;
    }
  }

  #ignoresTeardown({ finalizers }: Metadata): boolean {
    const { name, ignoreTeardownUntil: until, ignoreTeardownWhile: during } = this.#settings;
    const others = finalizers.filter((finalizer) => finalizer !== name);
    if (during?.some((finalizer) => others.includes(finalizer))) return true;
    return until !== undefined && others.some((finalizer) => !until.includes(finalizer));
  }
}

function waitsFor(outputs: Iterable<Pointer>): ReconcileResult {
  return { blockedBecause: `waits for ${[...outputs].map(pointerText).join(', ')} to go` };
}

function isOf(kind: Kind, { namespace, type }: Kind): boolean {
  return kind.namespace === namespace && kind.type === type;
}
