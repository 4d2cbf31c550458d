import type { FilePort } from '../environment/index.ts';
import type { Resource } from '../resource/index.ts';
import { digest } from '../resource/index.ts';
import type { ControllerContext, Namespaces, QueueController, ReconcileResult } from '../runtime/index.ts';
import { inputsIn, namespacesWith } from '../runtime/index.ts';
import {
  find,
  finish,
  readStatus,
  removeCompanion,
  systemCode,
  systemText,
  tellingFailure,
  wakeAbandoned,
  writeStatus,
} from './companion.ts';
import type { PathControllerOptions } from './file-controller.ts';
import type { DirectorySpec, DirectoryStatus } from './file-definitions.ts';
import { directoryDefinition, directoryStatusDefinition } from './file-definitions.ts';
import { directoriesController } from './names.ts';
import { outsideProblem } from './paths.ts';

export interface DirectoryControllerOptions extends PathControllerOptions {
  /** Told when a folder stays because something is in it that was not declared. */
  readonly onLeftovers?: ((leftovers: Leftovers) => void) | undefined;
}

/** What was left in a folder whose declaration is gone. */
export interface Leftovers {
  readonly directory: string;
  /** Names in it, ordered by their bytes. */
  readonly names: readonly string[];
}

/** Sees to it that declared folders are there. Removes the ones it made, once they are empty. */
export function directoryController(options: DirectoryControllerOptions): QueueController {
  const { namespaces, pollMs } = options;
  return {
    name: directoriesController,
    inputs: inputsIn(namespaces, directoryDefinition.type, 'primary'),
    outputs: [{ type: directoryStatusDefinition.type, kind: 'exclusive' }],
    run: (context) => wakeAbandoned(context, namespaces, directoryDefinition, directoryStatusDefinition),
    async reconcile(context, { pointer }): Promise<ReconcileResult | void> {
      const resource = await find(context, directoryDefinition.pointer(pointer.id, pointer.namespace));
      if (resource === undefined) return removeCompanion(context, directoryStatusDefinition, pointer);
      const status = await readStatus(context, directoryStatusDefinition, resource);
      if (resource.metadata.phase === 'tearingDown') {
        if (!resource.metadata.finalizers.includes(directoriesController)) return;
        if (status?.created === true) {
          await tellingFailure(context, directoryStatusDefinition, resource, status, () => remove(options, context, resource, status.path));
        }
        return finish(context, directoryStatusDefinition, pointer, directoriesController);
      }
      if (!resource.metadata.finalizers.includes(directoriesController)) await context.addFinalizer(pointer, directoriesController);
      await keep(options, context, resource, directoryDefinition.from(resource).spec, status);
      return { requeueAfterMs: pollMs };
    },
  };
}

async function keep(
  { environment: { files }, namespaces }: DirectoryControllerOptions,
  context: ControllerContext,
  resource: Resource,
  spec: DirectorySpec,
  before: DirectoryStatus | undefined,
): Promise<void> {
  const { path, within } = spec;
  const save = (
    more: Pick<DirectoryStatus, 'state' | 'created'> & { readonly reason?: string; readonly message?: string },
  ): Promise<void> =>
    writeStatus(context, directoryStatusDefinition, resource.metadata, {
      uid: resource.metadata.uid,
      observed: digest(resource.spec),
      path,
      ready: more.state === 'Present',
      reason: '',
      message: '',
      ...more,
    });
  if (before?.created === true && before.path !== path) await files.removeDirectory(before.path);
  const record = before?.path === path ? before : undefined;
  let created = record?.created ?? false;
  try {
    const outside = path === within ? undefined : await outsideProblem(files, path, within);
    if (outside !== undefined) return await save({ state: 'Failed', created, reason: 'OutsideDirectory', message: outside });
    const found = await files.stat(path);
    if (found === undefined) {
      // Recorded before it is made, so that one made before a crash is known as ours.
      if (record === undefined) await save({ state: 'Creating', created: true });
      created = true;
      await files.makeDirectory(path);
    } else if (found.kind !== 'directory' && !(found.kind === 'symlink' && (await leadsToFolder(files, path)))) {
      return await save({
        state: 'Failed',
        created,
        reason: 'NotAFolder',
        message: `${path} is there, but is no folder; move it away, or choose another path`,
      });
    } else if (record === undefined) created = await wasMade(context, namespaces, path);
    await save({ state: 'Present', created });
  } catch (error) {
    context.signal.throwIfAborted();
    if (systemCode(error) === '') throw error;
    await save({ state: 'Failed', created, reason: 'CannotCreate', message: systemText(error) });
    throw error;
  }
}

/** Stacks that share a folder which one of them made: the last one to go removes it. */
async function wasMade(context: ControllerContext, namespaces: Namespaces, path: string): Promise<boolean> {
  for (const namespace of await namespacesWith(context, namespaces, directoryStatusDefinition.type)) {
    const { items } = await context.list(directoryStatusDefinition.kind(namespace));
    if (items.some(({ spec }) => spec.path === path && spec.created)) return true;
  }
  return false;
}

async function leadsToFolder(files: FilePort, path: string): Promise<boolean> {
  try {
    return (await files.stat(await files.realPath(path)))?.kind === 'directory';
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function remove(
  { environment: { files }, namespaces, onLeftovers }: DirectoryControllerOptions,
  context: ControllerContext,
  { metadata }: Resource,
  path: string,
): Promise<void> {
  if (await files.removeDirectory(path)) return;
  const names = (await files.list(path)) ?? [];
  if (names.length === 0) return;
  // Another stack has the same folder: it stays for that one.
  for (const namespace of await namespacesWith(context, namespaces, directoryDefinition.type)) {
    const { items } = await context.list(directoryDefinition.kind(namespace));
    if (items.some(({ spec, metadata: { uid, phase } }) => spec.path === path && uid !== metadata.uid && phase !== 'tearingDown')) return;
  }
  context.log.log('info', 'a folder is left in place: it holds what was not declared', { directory: path, names: [...names] });
  onLeftovers?.({ directory: path, names });
}
