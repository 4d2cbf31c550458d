import { isLockedError } from '../resource/index.ts';
import type { OpenedStore, StoreUrl } from '../stores/index.ts';
import { openStore, storeUrlText } from '../stores/index.ts';
import type { CommandContext } from './context.ts';
import { withProgress } from './progress.ts';

/** How long a command waits for a store that another process holds, milliseconds. */
const lockPatienceMs = 2_000;

/**
 * Opens a store. One that another process holds may be free in a moment; after that the error names its holder. A large
 * file takes a while, which is told on a terminal.
 */
export async function openPatiently({ environment, io }: Pick<CommandContext, 'environment' | 'io'>, url: StoreUrl): Promise<OpenedStore> {
  const end = environment.elapsed() + lockPatienceMs;
  return withProgress({ environment, io }, `opening ${storeUrlText(url)}`, async () => {
    for (;;) {
      try {
        return await openStore(url, { environment, directory: io.directory });
      } catch (error) {
        if (!isLockedError(error) || environment.elapsed() >= end) throw error;
        await environment.sleep(100, io.signal);
      }
    }
  });
}
