import type { Pointer, Resource } from '../../resource/index.ts';
import { isConflictError, isNotFoundError, pointerText, SteadystateError, visibleText } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodeOf, exitCodes, UsageError } from '../exit-codes.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import type { Session } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';
import { nameOf } from './get.ts';
import { waitDestroyed } from './wait.ts';

export interface DeleteOptions {
  readonly filename: readonly string[];
  readonly wait?: boolean;
}

/** `delete TYPE ID…` or `delete -f FILE…` */
export async function deleteCommand(
  context: CommandContext,
  typeName: string | undefined,
  ids: readonly string[],
  options: DeleteOptions,
): Promise<number> {
  const { io, environment } = context;
  if ((typeName === undefined) === (options.filename.length === 0)) throw new UsageError('name TYPE and ID, or files with -f');
  if (typeName !== undefined && ids.length === 0) throw new UsageError(`name the ${typeName} to delete`);
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state);
    let pointers: readonly Pointer[];
    if (typeName === undefined) {
      const files = await loadResourceFiles(options.filename, { io, environment, types, namespace: context.options.namespace });
      // The last in a file may need the first: down goes the reverse way.
      pointers = files.map(({ resource }) => resource.metadata).reverse();
    } else {
      const type = types.find(typeName);
      pointers = ids.map((id) => ({ namespace: context.options.namespace ?? type.defaultNamespace, type: type.type, id }));
    }
    let exitCode: number = exitCodes.ok;
    const going: Pointer[] = [];
    for (const pointer of pointers) {
      try {
        const gone = await teardown(session, pointer);
        io.write(`${nameOf({ metadata: pointer } as Resource).trimEnd()} ${gone ? 'deleted' : 'is being deleted'}\n`);
        if (!gone) going.push(pointer);
      } catch (error) {
        io.writeError(`${(error as Error).message}\n`);
        exitCode = Math.max(exitCode, exitCodeOf(error));
      }
    }
    if (options.wait === true) {
      for (const pointer of going) {
        let told = '';
        await waitDestroyed(context, session, pointer, ({ metadata }) => {
          const text =
            metadata.finalizers.length > 0 ? `waiting for ${metadata.finalizers.map(visibleText).join(', ')}` : 'waiting for its end';
          if (text !== told) io.writeError(`${pointer.id}: ${text}\n`);
          told = text;
          if (metadata.finalizers.length === 0) void destroyFree(session, metadata).catch(() => {});
        });
        io.write(`${nameOf({ metadata: pointer } as Resource).trimEnd()} deleted\n`);
      }
    }
    return exitCode;
  });
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
    await session.state.destroy(metadata, metadata.uid === '' ? {} : { uid: metadata.uid });
    return true;
  } catch (error) {
    if (isNotFoundError(error)) return true;
    if (isConflictError(error)) return false;
    throw error;
  }
}
