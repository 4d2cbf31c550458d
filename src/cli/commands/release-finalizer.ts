import { visibleText } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { ExitError, exitCodes } from '../exit-codes.ts';
import { TypesLookup } from '../types-lookup.ts';

/** Annotation that remembers who took a finalizer away by hand. */
const releasedAnnotation = 'steadystate.dev/released-finalizers';

/** `release-finalizer TYPE ID FINALIZER`: for holders that will never come back. What they would have cleaned up stays. */
export async function releaseFinalizerCommand(context: CommandContext, typeName: string, id: string, finalizer: string): Promise<number> {
  const { io, environment } = context;
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state);
    const type = types.find(typeName);
    const pointer = { namespace: context.options.namespace ?? type.defaultNamespace, type: type.type, id };
    const { metadata } = await session.state.get(pointer);
    if (!metadata.finalizers.includes(finalizer)) {
      throw new ExitError(
        exitCodes.notFound,
        `${id} has no finalizer ${finalizer}; it has ${metadata.finalizers.length === 0 ? 'none' : metadata.finalizers.join(', ')}`,
      );
    }
    // The record goes into the same write as the removal.
    await session.state.updateWithConflicts(
      pointer,
      (draft) => {
        draft.finalizers.remove(finalizer);
        const before = draft.annotations.get(releasedAnnotation);
        const note = `${finalizer} by ${io.variables.USER ?? 'unknown'} at ${environment.timestamp()}`;
        draft.annotations.set(releasedAnnotation, before === undefined ? note : `${before}; ${note}`);
      },
      { owner: metadata.owner, expectedPhase: 'any' },
    );
    environment.log.log('warn', `finalizer ${finalizer} of ${type.type}/${pointer.namespace}/${id} was released by hand`, {
      user: io.variables.USER ?? 'unknown',
    });
    io.write(`released ${visibleText(finalizer)} of ${visibleText(id)}; what its holder would have cleaned up stays\n`);
    return exitCodes.ok;
  });
}
