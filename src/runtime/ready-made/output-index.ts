import type { Pointer } from '../../resource/index.ts';
import { pointerOf } from '../../resource/index.ts';
import type { ControllerContext } from '../controller.ts';
import { keyOf, pointerOfKey } from '../keys.ts';
import type { TransformSettings } from './transform-options.ts';
import { unmappedInput } from './transform-options.ts';

/** Knows the outputs of each input, also of inputs whose map answers something else by now. */
export class OutputIndex<In, Out> {
  readonly #settings: TransformSettings<In, Out>;
  readonly #outputs = new Map<string, Map<string, Pointer<Out>>>();
  #filling: Promise<void> | undefined;

  constructor(settings: TransformSettings<In, Out>) {
    this.#settings = settings;
  }

  /** Before anything else: what an earlier run has left is found by `unmap`. */
  async fill(context: ControllerContext): Promise<void> {
    this.#filling ??= this.#fill(context);
    try {
      await this.#filling;
    } catch (error) {
      this.#filling = undefined;
      throw error;
    }
  }

  of(input: Pointer): readonly Pointer<Out>[] {
    return [...(this.#outputs.get(keyOf(input))?.values() ?? [])];
  }

  /** Inputs that have outputs, as far as is known. */
  inputs(): readonly Pointer[] {
    return [...this.#outputs.keys()].map(pointerOfKey);
  }

  /** Before the output is written: a write whose outcome is unknown counts. */
  add(input: Pointer, output: Pointer<Out>): void {
    const key = keyOf(input);
    const outputs = this.#outputs.get(key) ?? new Map<string, Pointer<Out>>();
    outputs.set(keyOf(output), output);
    this.#outputs.set(key, outputs);
  }

  /** Once the output is gone. */
  remove(input: Pointer, output: Pointer): void {
    const key = keyOf(input);
    const outputs = this.#outputs.get(key);
    outputs?.delete(keyOf(output));
    if (outputs?.size === 0) this.#outputs.delete(key);
  }

  async #fill(context: ControllerContext): Promise<void> {
    const { name, output } = this.#settings;
    const { items } = await context.uncached.list(output);
    for (const resource of items) {
      if (resource.metadata.owner !== name) continue;
      this.add(unmappedInput(this.#settings, resource.metadata), pointerOf(resource) as Pointer<Out>);
    }
  }
}
