import { isConflictError, isNotFoundError, thisIncarnation } from '../../resource/index.ts';
import type { Input, QueueController } from '../controller.ts';

/** Destroys what nobody owns, is being torn down, and has no finalizers left. Each kind is given, or a type with `anyNamespace`. */
export function destroyController(
  kinds: readonly Pick<Input, 'namespace' | 'type'>[],
  options: { readonly name?: string } = {},
): QueueController {
  return {
    name: options.name ?? 'destroy',
    inputs: kinds.map(({ namespace, type }) => ({ namespace, type, kind: 'primary' })),
    outputs: [...new Set(kinds.map((kind) => kind.type))].map((type) => ({ type, kind: 'shared' })),
    concurrency: 4,
    async reconcile(context, { pointer }) {
      try {
        const { metadata } = await context.get(pointer);
        if (metadata.phase !== 'tearingDown' || metadata.finalizers.length > 0 || metadata.owner !== '') return;
        await context.destroy(pointer, { owner: '', ...thisIncarnation(metadata) });
      } catch (error) {
        // Gone already, or a finalizer came back meanwhile: its next change wakes us.
        if (!isNotFoundError(error) && !isConflictError(error)) throw error;
      }
    },
  };
}
