import type { Kind, Metadata, Pointer, Resource, ResourceDraft, ResourceInput, TypedKind } from '../../resource/index.ts';
import { findError, invalid, isNotFoundError, isPhaseConflictError, kindText, pointerText } from '../../resource/index.ts';
import type { ControllerContext, Output } from '../controller.ts';

/** What both transforms take: one input resource becomes one output resource. */
export interface TransformSettings<In, Out> {
  /** The controller's name: the owner of the outputs, and the finalizer on the inputs. */
  readonly name: string;
  readonly input: TypedKind<In>;
  readonly output: TypedKind<Out>;
  /** The output of an input, as it is created before `transform` edits it; `undefined`: there is to be none. */
  map(input: Resource<In>): Resource<Out> | ResourceInput<Out> | undefined;
  /** The input that an output is made from, by the output's metadata. */
  unmap(output: Metadata): Pointer<In>;
  /**
   * Edits the output so that it is as the input says. Called again after a lost race. Throw `skipError` to leave the item as it is,
   * `destroyOutputError` to take the output down.
   */
  transform(context: ControllerContext, input: Resource<In>, output: ResourceDraft<Out>): void | Promise<void>;
  /** Before the finalizer is removed from an input, once its output is gone. Throw to keep the finalizer for now. */
  finalizerRemoval?(context: ControllerContext, input: Resource<In>): void | Promise<void>;
  /** More types that the functions above write. */
  readonly extraOutputs?: readonly Output[];
  /** @default 'exclusive' */
  readonly outputKind?: Output['kind'];
  /** After the controller has ended. */
  shutdown?(context: ControllerContext): Promise<void>;
  /** Before the output is written, not called again after a lost race. */
  before?(context: ControllerContext, input: Resource<In>): void | Promise<void>;
  /** After the output was written. */
  after?(context: ControllerContext, input: Resource<In>, output: Resource<Out>): void | Promise<void>;
}

/** The output of an input; throws Invalid when it is of another kind than was declared. */
export function mappedOutput<In, Out>(
  settings: TransformSettings<In, Out>,
  input: Resource<In>,
): Resource<Out> | ResourceInput<Out> | undefined {
  const output = settings.map(input);
  if (output !== undefined) checkKindOf(settings.name, 'map', output.metadata, settings.output);
  return output;
}

/** The input of an output; throws Invalid when it is of another kind than was declared. */
export function unmappedInput<In, Out>(settings: TransformSettings<In, Out>, output: Metadata): Pointer<In> {
  const input = settings.unmap(output);
  checkKindOf(settings.name, 'unmap', input, settings.input);
  return input;
}

function checkKindOf(name: string, what: string, pointer: Pointer, { namespace, type }: Kind): void {
  if (pointer.namespace === namespace && pointer.type === type) return;
  const message = `answered ${pointerText(pointer)}, expected one of ${kindText({ namespace, type })}`;
  throw invalid([{ path: `${name}.${what}`, message }]);
}

/** A phase conflict of the output itself, not of something that the transform wrote beside it. */
export function isPhaseConflictOf(error: unknown, output: Pointer): boolean {
  const about = findError(error)?.pointer;
  return isPhaseConflictError(error) && about?.namespace === output.namespace && about.type === output.type && about.id === output.id;
}

/** What is there, or `undefined`. */
export async function find<Spec>(context: ControllerContext, pointer: Pointer<Spec>): Promise<Resource<Spec> | undefined> {
  try {
    return await context.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
