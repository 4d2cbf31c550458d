import type { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { programVersion } from '../version.ts';

/** `version` */
export async function versionCommand(context: CommandContext): Promise<number> {
  context.io.write(`steadystate ${programVersion} (node ${process.version})\n`);
  return exitCodes.ok;
}
