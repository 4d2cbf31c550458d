import { expect } from 'vitest';
import { z } from 'zod';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { Pointer } from '../../src/resource/index.ts';
import { defineResource } from '../../src/resource/index.ts';
import type { QueueController, Runtime, RuntimeOptions } from '../../src/runtime/index.ts';
import { createRuntime } from '../../src/runtime/index.ts';
import type { CoreState, State } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import type { ManualEnvironment } from '../../src/testing/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';

export const apples = defineResource({ type: 'Apples.example.dev', spec: z.object({ size: z.number().default(0) }) });
export const pies = defineResource({ type: 'Pies.example.dev', spec: z.object({ size: z.number().default(0) }) });
export const crumbs = defineResource({ type: 'Crumbs.example.dev', spec: z.object({ size: z.number().default(0) }) });

export const primaryApples = { namespace: 'default', type: apples.type, kind: 'primary' } as const;

/** A controller of apples; what it lacks is given. */
export function controllerOf(more: Partial<QueueController>): QueueController {
  return { name: 'baker', inputs: [primaryApples], outputs: [{ type: pies.type, kind: 'exclusive' }], reconcile: async () => {}, ...more };
}

/** A store, a runtime over it (or over what `wrap` makes of it), and time that stands still. */
export class World {
  readonly environment: ManualEnvironment;
  readonly memory: CoreState & AsyncDisposable;
  readonly state: State;
  readonly runtime: Runtime;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    options: {
      readonly wrap?: (core: CoreState) => CoreState;
      readonly environment?: Parameters<typeof manualEnvironment>[0];
      /** Commits of a kind that the store keeps. */
      readonly historySize?: number;
    } & Omit<Partial<RuntimeOptions>, 'state' | 'environment'> = {},
  ) {
    const { wrap = (core) => core, environment, historySize, ...more } = options;
    this.environment = manualEnvironment(environment);
    this.memory = memoryState({ environment: this.environment, ...(historySize !== undefined && { historySize }) });
    this.state = wrapCore(this.memory, { environment: this.environment });
    this.runtime = createRuntime({ state: wrap(this.memory), environment: this.environment, ...more });
  }

  async start(...controllers: readonly QueueController[]): Promise<void> {
    for (const controller of controllers) this.runtime.register(controller);
    this.#running = this.runtime.run(this.#stop.signal);
    await this.environment.settle();
  }

  /** Asks it to stop. */
  halt(): Promise<void> {
    this.#stop.abort();
    return this.#running ?? Promise.resolve();
  }

  /** Stops; nothing may be left open. */
  async end(): Promise<void> {
    await this.halt();
    await this.memory[Symbol.asyncDispose]();
    expect(this.environment.open.counts()).toEqual({});
  }

  async apple(id: string, size = 0): Promise<void> {
    await this.state.create(apples.create({ id, spec: { size } }));
    await this.environment.settle();
  }

  /** A new version of an apple. */
  async touch(id: string): Promise<void> {
    const apple = await this.state.get(apples.pointer(id));
    await this.state.update(apple);
    await this.environment.settle();
  }
}

export function idsOf(pointers: readonly Pointer[]): readonly string[] {
  return pointers.map(({ id }) => id);
}

/** A store whose writes fail as the test says, by what they do and to which id; it tears down in two steps, as most do. */
export function failingOn(core: CoreState, fault: (what: 'create' | 'update' | 'destroy', id: string) => unknown): CoreState {
  return new Proxy(core, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      if (key === 'teardown' || key === 'teardownAndDestroy') return undefined;
      if (key !== 'create' && key !== 'update' && key !== 'destroy') return member.bind(target);
      return async (about: Partial<Pointer> & { readonly metadata?: Pointer }, options: unknown) => {
        const failure = fault(key, about.metadata?.id ?? about.id ?? '');
        if (failure !== undefined) throw failure;
        return member.call(target, about, options) as unknown;
      };
    },
  });
}
