import type { Pointer } from '../../resource/index.ts';
import { isNotFoundError, SteadystateError } from '../../resource/index.ts';
import type { CoreState, TeardownOptions } from '../../state/index.ts';

/**
 * The outcome of a teardown that a server of COSI did not tell. It answers UNKNOWN also to the loser of two that race, so
 * what it keeps decides: a resource in teardown never leaves it, so whoever finds it there has what was asked for.
 */
export async function readTeardown(core: CoreState, pointer: Pointer, options: TeardownOptions, unclear: unknown): Promise<boolean> {
  if (options.signal?.aborted) throw unclear;
  const { metadata } = await core.get(pointer, readOptions(options)).catch((error: unknown) => {
    throw isNotFoundError(error) ? error : unclear;
  });
  if (metadata.phase !== 'tearingDown') throw unclear;
  return metadata.finalizers.length === 0;
}

/** How Go's runtime tears down, for servers without the call. */
export async function teardownByUpdate(core: CoreState, pointer: Pointer, options: TeardownOptions): Promise<boolean> {
  for (;;) {
    const { metadata, spec } = await core.get(pointer, readOptions(options));
    if (metadata.phase === 'tearingDown') return metadata.finalizers.length === 0;
    try {
      const written = await core.update({ metadata: { ...metadata, phase: 'tearingDown' }, spec }, options);
      return written.metadata.finalizers.length === 0;
    } catch (error) {
      const reason = error instanceof SteadystateError ? error.reason : undefined;
      if (reason !== 'version' && reason !== 'phase') throw error;
    }
  }
}

function readOptions({ signal }: TeardownOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
