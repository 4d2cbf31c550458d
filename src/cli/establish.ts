import { isUnavailableError } from '../resource/index.ts';
import type { CommandContext } from './context.ts';

/** How long after a failed try the next one comes, milliseconds. */
const retryMs = 250;

/** Establishes a watch; a server that goes away just now is waited for, as it is once the watch stands. */
export async function establish<Watching>(
  { environment, io }: Pick<CommandContext, 'environment' | 'io'>,
  start: () => Promise<Watching>,
): Promise<Watching> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!isUnavailableError(error)) throw error;
      await environment.sleep(retryMs, io.signal);
    }
  }
}
