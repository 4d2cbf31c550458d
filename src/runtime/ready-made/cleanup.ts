import type { Kind, Pointer, Resource, ResourceQuery, TypedKind } from '../../resource/index.ts';
import type { ControllerContext, Input, Output, QueueController, ReconcileResult } from '../controller.ts';
import { eachOf } from '../each-of.ts';
import { keyOf } from '../keys.ts';
import { takeDown } from './take-down.ts';
import { find } from './transform-options.ts';

/** What has to be done before an input may go. */
export interface CleanupHandler<In> {
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  /** Answers whether all is done; a later change of its inputs asks again. */
  cleanUp(context: ControllerContext, input: Resource<In>): Promise<boolean>;
}

export interface CleanupSettings<In> {
  /** The controller's name, and the finalizer on the inputs. */
  readonly name: string;
  readonly input: TypedKind<In>;
  /** All must be done; they run in this order, each once those before are done. */
  readonly handlers: readonly CleanupHandler<In>[];
  /** @default 1 */
  readonly concurrency?: number;
}

export interface DependentsOptions {
  /** Dependents with one of these owners count too. @default only those that nobody owns */
  readonly extraOwners?: readonly string[];
}

/** Takes down the dependents that `query` finds, and waits until they are gone. */
export function removeOutputs<In>(
  kind: Kind,
  query: (input: Resource<In>) => ResourceQuery,
  { extraOwners = [] }: DependentsOptions = {},
): CleanupHandler<In> {
  return {
    inputs: [{ namespace: kind.namespace, type: kind.type, kind: 'mapped' }],
    outputs: [{ type: kind.type, kind: 'shared' }],
    async cleanUp(context, input) {
      let done = true;
      const { items } = await context.uncached.list(kind, query(input));
      await eachOf(items, async ({ metadata }) => {
        if (metadata.owner !== '' && !extraOwners.includes(metadata.owner)) return;
        if (!(await takeDown(context, metadata))) done = false;
      });
      return done;
    },
  };
}

/** Waits until there is no resource that `query` finds, whoever owns it. */
export function hasNoOutputs<In>(kind: Kind, query: (input: Resource<In>) => ResourceQuery): CleanupHandler<In> {
  return {
    inputs: [{ namespace: kind.namespace, type: kind.type, kind: 'mapped' }],
    outputs: [],
    cleanUp: async (context, input) => (await context.uncached.list(kind, query(input))).items.length === 0,
  };
}

/** Holds its inputs by a finalizer; when one is torn down, sees to its dependents before it lets go. */
export function cleanup<In>(settings: CleanupSettings<In>): QueueController {
  const { name, input: kind, handlers, concurrency } = settings;
  /** Inputs that wait for a change of dependents. */
  const waiting = new Map<string, Pointer>();
  return {
    name,
    inputs: [{ namespace: kind.namespace, type: kind.type, kind: 'primary' }, ...unique(handlers.flatMap(({ inputs }) => inputs))],
    outputs: uniqueOutputs(handlers.flatMap(({ outputs }) => outputs)),
    ...(concurrency !== undefined && { concurrency }),
    mapInput: () => [...waiting.values()],
    async reconcile(context, { pointer }): Promise<ReconcileResult | void> {
      const key = keyOf(pointer);
      waiting.delete(key);
      const input = await find(context, pointer as Pointer<In>);
      if (input === undefined) return;
      const { metadata } = input;
      const held = metadata.finalizers.includes(name);
      if (metadata.phase === 'running') {
        if (!held) await context.addFinalizer(metadata, name);
        return;
      }
      if (!held) return;
      // Before the look, so that what changes after it wakes us.
      waiting.set(key, pointer);
      for (const handler of handlers) {
        if (await handler.cleanUp(context, input)) continue;
        const types = [...new Set(handler.inputs.map(({ type }) => type))].join(', ');
        return { blockedBecause: types === '' ? 'waits for its clean-up' : `waits for its clean-up: ${types}` };
      }
      waiting.delete(key);
      await context.removeFinalizer(metadata, name);
    },
  };
}

function unique(inputs: readonly Input[]): readonly Input[] {
  return [...new Map(inputs.map((input) => [JSON.stringify([input.namespace, input.type, input.id ?? null]), input])).values()];
}

function uniqueOutputs(outputs: readonly Output[]): readonly Output[] {
  return [...new Map(outputs.map((output) => [output.type, output])).values()];
}
