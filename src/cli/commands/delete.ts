import { declaredPaths, directoryDefinition, listLeftovers, stackDefinition, stackDirectory } from '../../host/index.ts';
import type { Pointer, Resource, ResourceQuery } from '../../resource/index.ts';
import {
  isConflictError,
  isNotFoundError,
  parseLabelQuery,
  pointerText,
  SteadystateError,
  thisIncarnation,
  visibleText,
} from '../../resource/index.ts';
import { errorText } from '../advice.ts';
import type { CommandContext } from '../context.ts';
import { asUsage, timeoutMs, withSession } from '../context.ts';
import { exitCodeOf, exitCodes, UsageError } from '../exit-codes.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import { allNamespaces } from '../follow-kind.ts';
import { shownName } from '../output/names.ts';
import type { Session } from '../session.ts';
import { typedPointer } from '../target.ts';
import { TypesLookup } from '../types-lookup.ts';
import { waitDestroyed } from './wait.ts';

export interface DeleteOptions {
  readonly filename: readonly string[];
  readonly wait?: boolean;
  readonly selector?: string;
  readonly all?: boolean;
  readonly ignoreNotFound?: boolean;
}

/** How long `--wait` waits for all together, milliseconds. */
const defaultWaitMs = 30_000;
/** Most paths that are told of what a stack leaves behind. */
const shownLeftovers = 50;

/** What was torn down and is not gone yet. */
interface Going {
  readonly pointer: Pointer;
  /** Of a stack, where services may have left something. */
  readonly directory: string | undefined;
}

/** `delete TYPE ID…`, `delete TYPE -l QUERY`, `delete TYPE --all`, or `delete -f FILE…` */
export async function deleteCommand(
  context: CommandContext,
  typeName: string | undefined,
  ids: readonly string[],
  options: DeleteOptions,
): Promise<number> {
  const { io, environment } = context;
  if ((typeName === undefined) === (options.filename.length === 0)) throw new UsageError('name TYPE and ID, or files with -f');
  const { selector, all = false } = options;
  const several = all || selector !== undefined;
  if (several && (ids.length > 0 || typeName === undefined || (all && selector !== undefined)))
    throw new UsageError('--all and -l go with a type alone, one of them');
  if (typeName !== undefined && ids.length === 0 && !several) throw new UsageError(`name the ${typeName} to delete`);
  const query: ResourceQuery = selector === undefined ? {} : { labelQueries: [asUsage('-l', () => parseLabelQuery(selector))] };
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state, context.environment);
    let pointers: readonly Pointer[];
    if (typeName === undefined) {
      const files = await loadResourceFiles(options.filename, { io, environment, types, namespace: context.options.namespace });
      // The last in a file may need the first: down goes the reverse way.
      pointers = files.map(({ resource }) => resource.metadata).reverse();
    } else if (several) {
      const type = types.find(typeName);
      const namespace = context.options.namespace ?? type.defaultNamespace;
      pointers = (await session.state.list({ namespace, type: type.type }, query)).items.map(({ metadata }) => metadata);
      if (pointers.length === 0) io.writeError(`no ${visibleText(type.definition?.displayType ?? type.type)} in ${namespace}\n`);
    } else {
      pointers = ids.map((id) => typedPointer(types, typeName, id, context.options.namespace));
    }
    let exitCode: number = exitCodes.ok;
    const going: Going[] = [];
    for (const pointer of pointers) {
      try {
        // Its operator forgets the directory with the stack.
        const directory =
          options.wait === true && pointer.type === stackDefinition.type ? await stackDirectory(session.state, pointer) : undefined;
        const gone = await teardown(session, pointer);
        io.write(`${shownName(pointer)} ${gone ? 'deleted' : 'is being deleted'}\n`);
        if (!gone) going.push({ pointer, directory });
        else if (directory !== undefined) io.write(await leftoversText(context, session, directory));
      } catch (error) {
        if (options.ignoreNotFound === true && isNotFoundError(error)) continue;
        io.writeError(errorText(error));
        exitCode = Math.max(exitCode, exitCodeOf(error));
      }
    }
    if (options.wait === true) exitCode = Math.max(exitCode, await waitForAll(context, session, going));
    return exitCode;
  });
}

/** Waits for all, within one time; what is left in the directories of stacks is told. Answers the worst exit code. */
async function waitForAll(context: CommandContext, session: Session, going: readonly Going[]): Promise<number> {
  const { io, environment } = context;
  const end = environment.elapsed() + (timeoutMs(context, defaultWaitMs) ?? defaultWaitMs);
  let exitCode: number = exitCodes.ok;
  for (const { pointer, directory } of going) {
    let told = '';
    const tell = ({ metadata }: Resource): void => {
      const text =
        metadata.finalizers.length > 0 ? `waiting for ${metadata.finalizers.map(visibleText).join(', ')}` : 'waiting for its end';
      if (text !== told) io.writeError(`${visibleText(pointer.id)}: ${text}\n`);
      told = text;
      // Somebody else may be quicker, and a finalizer may come: the wait goes on in any case.
      if (metadata.finalizers.length === 0) void destroyFree(session, metadata).catch(() => {});
    };
    try {
      await waitDestroyed(context, session, pointer, Math.max(0, end - environment.elapsed()), tell);
      io.write(`${shownName(pointer)} deleted\n`);
      if (directory !== undefined) io.write(await leftoversText(context, session, directory));
    } catch (error) {
      if (io.signal.aborted) throw error;
      io.writeError(errorText(error));
      exitCode = Math.max(exitCode, exitCodeOf(error));
    }
  }
  return exitCode;
}

/** What services wrote stays; a person should know where. */
async function leftoversText({ environment }: CommandContext, session: Session, directory: string): Promise<string> {
  // Another stack may live in the same folder.
  const namespaces = await allNamespaces(session, directoryDefinition.type);
  const left = await listLeftovers(environment.files, directory, await declaredPaths(session.state, namespaces));
  if (left.length === 0) return '';
  const shown = left.slice(0, shownLeftovers).map((path) => `  ${visibleText(path)}\n`);
  const more = left.length > shownLeftovers ? `  … and ${left.length - shownLeftovers} more\n` : '';
  return `left in ${visibleText(directory)}, since it was not declared:\n${shown.join('')}${more}`;
}

/** Marks it, and removes it if nothing holds it. Answers whether it is gone. */
async function teardown(session: Session, pointer: Pointer): Promise<boolean> {
  const { metadata } = await session.state.get(pointer);
  if (metadata.owner !== '') {
    throw new SteadystateError(
      'Conflict',
      `${pointerText(pointer)} is owned by the controller ${visibleText(metadata.owner)}, which would make it again; delete what it is made from`,
      { pointer, reason: 'owner' },
    );
  }
  if (!(await session.state.teardown(pointer))) return false;
  return destroyFree(session, metadata);
}

/** Destroys what has no finalizers; a finalizer that came meanwhile holds it. */
async function destroyFree(session: Session, metadata: Resource['metadata']): Promise<boolean> {
  try {
    await session.state.destroy(metadata, thisIncarnation(metadata));
    return true;
  } catch (error) {
    if (isNotFoundError(error)) return true;
    if (isConflictError(error)) return false;
    throw error;
  }
}
