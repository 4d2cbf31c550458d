/** Ends the transform of one item, and takes its output down. */
export class DestroyOutputError extends Error {
  override readonly name: string = 'DestroyOutputError';
  constructor(cause?: unknown) {
    super(cause instanceof Error ? cause.message : 'the output is not wanted', cause === undefined ? undefined : { cause });
  }
}

/** Throw it in a transform: there is to be no output for this input, as it is now. The input stays held. */
export const destroyOutputError = (cause?: unknown): Error => new DestroyOutputError(cause);

/** Found by name, so that it may come from another copy of this package. */
export function isDestroyOutputError(error: unknown): boolean {
  const seen = new Set<unknown>();
  for (let current = error; current instanceof Error && !seen.has(current); current = current.cause) {
    if (current.name === 'DestroyOutputError') return true;
    seen.add(current);
  }
  return false;
}
