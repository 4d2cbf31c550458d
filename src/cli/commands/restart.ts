import { requestRestart } from '../../host/index.ts';
import { visibleText } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';

/** `restart STACK SERVICE` */
export async function restartCommand(context: CommandContext, stack: string, service: string): Promise<number> {
  return withSession(context, async (session) => {
    const { namespace } = context.options;
    await requestRestart(session.state, context.environment, { id: stack, ...(namespace !== undefined && { namespace }) }, service);
    context.io.write(`${visibleText(`${service} of ${stack}`)} is being restarted\n`);
    return exitCodes.ok;
  });
}
