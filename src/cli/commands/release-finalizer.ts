import { isUnsupportedError, visibleText } from '../../resource/index.ts';
import { releaseFinalizer } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import type { Target } from '../target.ts';
import { targetOf } from '../target.ts';

/** `release-finalizer TYPE ID FINALIZER`: for holders that will never come back. What they would have cleaned up stays. */
export async function releaseFinalizerCommand(context: CommandContext, typeName: string, id: string, finalizer: string): Promise<number> {
  const { io } = context;
  return withSession(context, async (session) => {
    const { pointer } = await targetOf(context, session, typeName, id);
    const { uid } = (await session.state.get(pointer)).metadata;
    const { record, holder } = await release(context, session, pointer, { finalizer, uid, by: io.caller() });
    io.write(`released ${visibleText(finalizer)} of ${visibleText(id)}; what its holder would have cleaned up stays\n`);
    io.write(`it was held by ${visibleText(holder)}; on record as event ${visibleText(record)}\n`);
    return exitCodes.ok;
  });
}

/** By the server, which knows what runs; by this process where there is none, or it is not one of ours. Never both. */
async function release(
  { environment }: CommandContext,
  session: Session,
  pointer: Target['pointer'],
  request: { readonly finalizer: string; readonly uid: string; readonly by: string },
): Promise<{ readonly record: string; readonly holder: string }> {
  try {
    if (session.control !== undefined) return await session.control.releaseFinalizer(pointer, request);
  } catch (error) {
    // Unsupported is told before anything is done.
    if (!isUnsupportedError(error)) throw error;
  }
  const { record } = await releaseFinalizer(session.state, environment, pointer, request);
  return { record: record.metadata.id, holder: record.spec.release?.holder ?? '' };
}
