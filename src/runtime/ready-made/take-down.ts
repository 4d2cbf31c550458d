import type { Metadata } from '../../resource/index.ts';
import { isNotFoundError, isPendingFinalizersError, thisIncarnation } from '../../resource/index.ts';
import type { ControllerContext } from '../controller.ts';

/**
 * Tears a resource down and destroys it once nothing holds it; answers whether it is gone. While it is not, its next change tells
 * when to try again.
 */
export async function takeDown(context: ControllerContext, metadata: Metadata): Promise<boolean> {
  const { owner } = metadata;
  try {
    if (!(await context.teardown(metadata, { owner }))) return false;
    await context.destroy(metadata, { owner, ...thisIncarnation(metadata) });
    return true;
  } catch (error) {
    if (isNotFoundError(error)) return true;
    // Somebody holds it once more.
    if (isPendingFinalizersError(error)) return false;
    throw error;
  }
}
