import { nameProblem, visibleText } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { inputText, isAnyNamespace } from './any-namespace.ts';
import type { AnyController, Input, Output } from './controller.ts';
import { isQueueController } from './controller.ts';

const families = {
  queue: { named: 'a queue controller', kinds: ['primary', 'mapped', 'mappedDestroyReady'] },
  classic: { named: 'a classic controller', kinds: ['weak', 'strong', 'destroyReady'] },
} as const;

/** What inputs ask of the store. */
export type InputStore = Pick<CoreState, 'watchNamespaces'>;

/** What is wrong with a registration, in words; none: it fits beside the others. */
export function registrationProblem(controller: AnyController, others: readonly AnyController[], store: InputStore): string | undefined {
  if (typeof controller.name !== 'string' || controller.name === '') return 'a controller needs a name';
  // It becomes an owner and a finalizer.
  const nameIs = nameProblem(controller.name);
  if (nameIs !== undefined) return `the name of a controller: ${nameIs}`;
  if (others.some((other) => other.name === controller.name))
    return `a controller named ${visibleText(controller.name)} is registered already`;
  const { inputs, outputs } = controller;
  if (!isListOfObjects(outputs)) return 'a controller needs a list of outputs';
  const [body, does] = isQueueController(controller) ? ['reconcile', controller.reconcile] : ['run', controller.run];
  if (typeof does !== 'function') return `a controller needs a function reconcile (with a queue) or run, and its ${body} is ${typeof does}`;
  return inputsProblem(controller, inputs, store) ?? queueProblem(controller) ?? outputsProblem(outputs, others);
}

/** The same for inputs alone, which may change while a classic controller runs. */
export function inputsProblem(controller: AnyController, inputs: readonly Input[], store: InputStore): string | undefined {
  if (!isListOfObjects(inputs)) return 'a controller needs a list of inputs';
  const family = isQueueController(controller) ? families.queue : families.classic;
  const seen = new Set<string>();
  for (const input of inputs) {
    const { namespace, type, id, kind } = input;
    for (const [field, name] of Object.entries({ namespace, type, id })) {
      const isOpen = (field === 'id' && name === undefined) || (field === 'namespace' && isAnyNamespace(namespace));
      const problem = isOpen ? undefined : nameProblem(name as string);
      if (problem !== undefined) return `the ${field} of an input: ${problem}`;
    }
    if (!(family.kinds as readonly string[]).includes(kind))
      return `the input ${inputText(input)} is of kind ${kind}; ${family.named} takes ${family.kinds.join(', ')}`;
    if (isAnyNamespace(namespace) && store.watchNamespaces === undefined)
      return `the input ${inputText(input)}: this store cannot tell in which namespaces a type has resources; name the namespaces`;
    const key = JSON.stringify([namespace, type, id ?? null]);
    if (seen.has(key)) return `the input ${inputText(input)}${id === undefined ? '' : `, ${visibleText(id)},`} is declared twice`;
    seen.add(key);
  }
  return undefined;
}

function isListOfObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null);
}

function queueProblem(controller: AnyController): string | undefined {
  if (!isQueueController(controller)) return undefined;
  const { inputs, mapInput, concurrency } = controller;
  if (!inputs.some((input) => input.kind === 'primary')) return 'a queue controller needs a primary input';
  const mapped = inputs.find((input) => input.kind !== 'primary');
  if (mapped !== undefined && mapInput === undefined)
    return `the input ${inputText(mapped)} is ${mapped.kind}, so the controller needs mapInput`;
  if (concurrency !== undefined && (!Number.isSafeInteger(concurrency) || concurrency < 1))
    return `concurrency must be a whole number from 1, found ${concurrency}`;
  return undefined;
}

function outputsProblem(outputs: readonly Output[], others: readonly AnyController[]): string | undefined {
  const seen = new Set<string>();
  for (const { type, kind } of outputs) {
    if (typeof type !== 'string' || type === '') return 'an output needs a type';
    if (kind !== 'exclusive' && kind !== 'shared')
      return `the output ${visibleText(type)} is of kind ${String(kind)}; it is exclusive or shared`;
    if (seen.has(type)) return `the output ${visibleText(type)} is declared twice`;
    seen.add(type);
    for (const other of others) {
      const clash = other.outputs.find((theirs) => theirs.type === type);
      if (clash !== undefined && (clash.kind === 'exclusive' || kind === 'exclusive')) {
        const both = `${kind} here and ${clash.kind} in ${visibleText(other.name)}`;
        return `the output ${visibleText(type)} is ${both}: an exclusive output has one controller`;
      }
    }
  }
  return undefined;
}
