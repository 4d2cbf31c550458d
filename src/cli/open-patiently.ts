import { isLockedError } from '../resource/index.ts';
import type { CommandContext } from './context.ts';

/** How long a command waits for a store that another process holds, milliseconds. */
const lockPatienceMs = 2_000;

/** A store that another process holds may be free in a moment; after that the error names its holder. */
export async function openPatiently<Value>(
  { environment, io }: Pick<CommandContext, 'environment' | 'io'>,
  open: () => Promise<Value>,
): Promise<Value> {
  const end = environment.elapsed() + lockPatienceMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!isLockedError(error) || environment.elapsed() >= end) throw error;
      await environment.sleep(100, io.signal);
    }
  }
}
