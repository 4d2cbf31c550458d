import type { Kind, Pointer } from '../resource/index.ts';
import { kindText, pointerText, SteadystateError } from '../resource/index.ts';
import type { Input, Output, QueueController } from './controller.ts';

const queueInputs: ReadonlySet<string> = new Set(['primary', 'mapped', 'mappedDestroyReady']);
const finalizerInputs: ReadonlySet<string> = new Set(['strong', 'primary', 'mapped']);

/** What a controller may do, from what it declared. */
export class AccessLimits {
  readonly #name: string;
  readonly #inputs: readonly Input[];
  readonly #outputs: ReadonlySet<string>;

  constructor(name: string, inputs: readonly Input[], outputs: readonly Output[]) {
    this.#name = name;
    this.#inputs = inputs;
    this.#outputs = new Set(outputs.map((output) => output.type));
  }

  checkRead(pointer: Pointer): void {
    if (this.#outputs.has(pointer.type)) return;
    if (this.#inputs.some((input) => covers(input, pointer) && (input.id === undefined || input.id === pointer.id))) return;
    throw this.#denied(`may not read ${pointerText(pointer)}`, 'as an input or output', pointer);
  }

  checkList(kind: Kind): void {
    if (this.#outputs.has(kind.type)) return;
    if (this.#inputs.some((input) => covers(input, kind) && input.id === undefined)) return;
    throw this.#denied(`may not list ${kindText(kind)}`, 'as an input without an id, or as an output');
  }

  checkWrite(pointer: Pointer): void {
    if (!this.#outputs.has(pointer.type)) throw this.#denied(`may not write ${pointerText(pointer)}`, 'as an output', pointer);
  }

  checkFinalizer(pointer: Pointer): void {
    const strong = this.#inputs.some(
      (input) => covers(input, pointer) && finalizerInputs.has(input.kind) && (input.id === undefined || input.id === pointer.id),
    );
    if (!strong)
      throw this.#denied(`may not change finalizers of ${pointerText(pointer)}`, 'as a strong, primary or mapped input', pointer);
  }

  #denied(what: string, how: string, pointer?: Pointer): SteadystateError {
    return new SteadystateError(
      'Forbidden',
      `the controller ${this.#name} ${what}: declare its type ${how}`,
      pointer === undefined ? {} : { pointer },
    );
  }
}

function covers(input: Input, kind: Kind): boolean {
  return input.type === kind.type && input.namespace === kind.namespace;
}

/** What is wrong with a registration, in words; none: it fits beside the others. */
export function registrationProblem(controller: QueueController, others: readonly QueueController[]): string | undefined {
  if (controller.name === '') return 'a controller needs a name';
  if (others.some((other) => other.name === controller.name)) return `a controller named ${controller.name} is registered already`;
  const seen = new Set<string>();
  for (const input of controller.inputs) {
    if (!queueInputs.has(input.kind))
      return `the input ${input.type} is of kind ${input.kind}; a queue controller takes primary, mapped and mappedDestroyReady`;
    const key = JSON.stringify([input.namespace, input.type, input.id ?? null]);
    if (seen.has(key)) return `the input ${kindText(input)} is declared twice`;
    seen.add(key);
    if (input.kind !== 'primary' && controller.mapInput === undefined)
      return `the input ${kindText(input)} is ${input.kind}, so the controller needs mapInput`;
  }
  if (!controller.inputs.some((input) => input.kind === 'primary')) return 'a queue controller needs a primary input';
  const { concurrency } = controller;
  if (concurrency !== undefined && (!Number.isSafeInteger(concurrency) || concurrency < 1))
    return `concurrency must be a whole number from 1, found ${concurrency}`;
  const outputs = new Set<string>();
  for (const output of controller.outputs) {
    if (outputs.has(output.type)) return `the output ${output.type} is declared twice`;
    outputs.add(output.type);
    for (const other of others) {
      const clash = other.outputs.find((theirs) => theirs.type === output.type);
      if (clash !== undefined && (clash.kind === 'exclusive' || output.kind === 'exclusive')) {
        return `the output ${output.type} is ${output.kind} here and ${clash.kind} in ${other.name}: an exclusive output has one controller`;
      }
    }
  }
  return undefined;
}
