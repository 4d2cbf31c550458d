import { posix } from 'node:path';
import type { Environment, FilePort } from '../environment/index.ts';
import type { Pointer } from '../resource/index.ts';
import { isNotFoundError, SteadystateError } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { directoryDefinition, fileDefinition } from './file-definitions.ts';
import { restartAnnotation } from './names.ts';
import { rotatedNames } from './output-file.ts';
import { processDefinition } from './process-definition.ts';
import { outputFileOf } from './stack-children.ts';
import type { StackSpec } from './stack-definition.ts';
import { stackDefinition, stackStatusDefinition } from './stack-definition.ts';
import type { StackExtra } from './stack-workload.ts';
import { suggestion } from './strict-schema.ts';

/** Where the output of one service is. */
export interface ServiceOutput {
  readonly service: string;
  /** The file that is written now; it may not be there yet. */
  readonly file: string;
  /** Earlier outputs that may be there, the newest first. */
  readonly earlier: readonly string[];
}

/** Where the outputs of a stack's services are, or that of one. NotFound names the services that there are. */
export async function stackOutputs(
  state: Pick<State, 'get'>,
  stack: { readonly id: string; readonly namespace?: string },
  service?: string,
  keptOutputs = 3,
): Promise<readonly ServiceOutput[]> {
  const pointer = stackDefinition.pointer(stack.id, stack.namespace);
  const { spec } = await state.get(pointer);
  if (service !== undefined) checkService(pointer, spec, service);
  const directory = await stackDirectory(state, stack);
  if (directory === undefined)
    throw new SteadystateError(
      'NotFound',
      `the stack ${stack.id} was not looked at by its operator yet, so it has no outputs; is the operator running?`,
      { pointer },
    );
  return (service === undefined ? Object.keys(spec.services) : [service]).map((name) => {
    const file = outputFileOf({ directory, namespace: pointer.namespace, name: stack.id }, name);
    return { service: name, file, earlier: rotatedNames(file, keptOutputs) };
  });
}

/** The absolute directory of a stack; `undefined` until its operator has settled it. */
export async function stackDirectory(
  state: Pick<State, 'get'>,
  stack: { readonly id: string; readonly namespace?: string },
): Promise<string | undefined> {
  try {
    const { spec } = await state.get(stackStatusDefinition.pointer(stack.id, stack.namespace));
    return (spec.extra as StackExtra | undefined)?.directory?.path;
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}

/** Asks for one restart of one service. NotFound names the services that there are. */
export async function requestRestart(
  state: State,
  environment: Environment,
  stack: { readonly id: string; readonly namespace?: string },
  service: string,
): Promise<void> {
  const pointer = stackDefinition.pointer(stack.id, stack.namespace);
  checkService(pointer, (await state.get(pointer)).spec, service);
  await state.updateWithConflicts(pointer, (draft) => {
    // The time is for people; the rest makes two requests of one moment two.
    draft.annotations.set(restartAnnotation(service), `${environment.timestamp()}/${environment.id().slice(0, 8)}`);
  });
}

/** Absolute paths of all folders, files and outputs that the resources of these namespaces stand for. */
export async function declaredPaths(
  state: Pick<State, 'list'>,
  namespaces: readonly string[],
  keptOutputs = 3,
): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for (const namespace of namespaces) {
    for (const definition of [directoryDefinition, fileDefinition])
      for (const { spec } of (await state.list<{ readonly path: string }>(definition.kind(namespace))).items) paths.add(spec.path);
    for (const { spec } of (await state.list(processDefinition.kind(namespace))).items)
      for (const path of [spec.outputFile, ...rotatedNames(spec.outputFile, keptOutputs)]) paths.add(path);
  }
  return paths;
}

/**
 * What is in a folder and below it, as paths relative to it; folders end with a slash. Links are not followed. Other stacks may
 * share the folder: what is among `declared` is no leftover.
 */
export async function listLeftovers(
  files: FilePort,
  directory: string,
  declared: ReadonlySet<string> = new Set(),
): Promise<readonly string[]> {
  const found: string[] = [];
  const visit = async (folder: string, prefix: string): Promise<void> => {
    for (const name of (await files.list(folder)) ?? []) {
      const path = posix.join(folder, name);
      if ((await files.stat(path))?.kind === 'directory') {
        if (!declared.has(path)) found.push(`${prefix}${name}/`);
        await visit(path, `${prefix}${name}/`);
      } else if (!declared.has(path)) found.push(`${prefix}${name}`);
    }
  };
  await visit(directory, '');
  return found;
}

function checkService(pointer: Pointer, spec: Pick<StackSpec, 'services'>, service: string): void {
  const known = Object.keys(spec.services);
  if (known.includes(service)) return;
  throw new SteadystateError(
    'NotFound',
    `the stack ${pointer.id} has no service ${service}${suggestion(service, known)}; its services are ${known.join(', ')}`,
    { pointer },
  );
}
