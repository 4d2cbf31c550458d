import type { Kind, Pointer } from '../resource/index.ts';
import { kindText, pointerText, SteadystateError, visibleText } from '../resource/index.ts';
import { isAnyNamespace } from './any-namespace.ts';
import type { Input, Output } from './controller.ts';

const finalizerInputs: ReadonlySet<string> = new Set(['strong', 'primary', 'mapped']);

/** What a controller may do, from what it declared. */
export class AccessLimits {
  readonly #name: string;
  #inputs: readonly Input[];
  readonly #outputs: ReadonlySet<string>;

  constructor(name: string, inputs: readonly Input[], outputs: readonly Output[]) {
    this.#name = name;
    this.#inputs = inputs;
    this.#outputs = new Set(outputs.map((output) => output.type));
  }

  /** The inputs of a classic controller may change while it runs. */
  set inputs(inputs: readonly Input[]) {
    this.#inputs = inputs;
  }

  checkRead(pointer: Pointer): void {
    if (this.#outputs.has(pointer.type)) return;
    if (this.#inputs.some((input) => covers(input, pointer))) return;
    throw this.#denied(`may not read ${pointerText(pointer)}`, `an input (${kindText(pointer)}) or an output`, pointer, pointer);
  }

  checkList(kind: Kind): void {
    if (this.#outputs.has(kind.type)) return;
    if (this.#inputs.some((input) => input.type === kind.type && isIn(input, kind.namespace) && input.id === undefined)) return;
    throw this.#denied(`may not list ${kindText(kind)}`, 'an input without an id, or an output', kind);
  }

  checkNamespaces(type: string): void {
    if (this.#outputs.has(type)) return;
    if (this.#inputs.some((input) => input.type === type && isAnyNamespace(input.namespace))) return;
    throw new SteadystateError(
      'Forbidden',
      `the controller ${visibleText(this.#name)} may not ask where ${visibleText(type)} are: declare the type as an input in any namespace, or an output`,
    );
  }

  checkWrite(pointer: Pointer): void {
    if (this.#outputs.has(pointer.type)) return;
    throw this.#denied(`may not write ${pointerText(pointer)}`, 'an output', pointer, pointer);
  }

  checkFinalizer(pointer: Pointer): void {
    if (this.#inputs.some((input) => finalizerInputs.has(input.kind) && covers(input, pointer))) return;
    throw this.#denied(`may not change finalizers of ${pointerText(pointer)}`, 'a strong, primary or mapped input', pointer, pointer);
  }

  /** A controller may write the type at all. */
  isOutput(type: string): boolean {
    return this.#outputs.has(type);
  }

  #denied(what: string, how: string, kind: Kind, pointer?: Pointer): SteadystateError {
    return new SteadystateError(
      'Forbidden',
      `the controller ${visibleText(this.#name)} ${what}: declare the type ${visibleText(kind.type)} as ${how}`,
      pointer === undefined
        ? { kind: { namespace: kind.namespace, type: kind.type } }
        : { pointer: { namespace: pointer.namespace, type: pointer.type, id: pointer.id } },
    );
  }
}

/** Whether a resource is of an input. */
export function covers(input: Input, { namespace, type, id }: Pointer): boolean {
  return input.type === type && isIn(input, namespace) && (input.id === undefined || input.id === id);
}

function isIn(input: Input, namespace: string): boolean {
  return isAnyNamespace(input.namespace) || input.namespace === namespace;
}
