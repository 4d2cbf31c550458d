import type { CoreState } from './core-state.ts';

/** The calls that not every store has, and that a wrapper changes nothing about: what `core` has of them. */
export function optionalCalls(core: CoreState): Pick<CoreState, 'waitForRevision' | 'watchNamespaces' | 'finalizerNotes'> {
  const { waitForRevision, watchNamespaces, finalizerNotes } = core;
  return {
    ...(waitForRevision && { waitForRevision: waitForRevision.bind(core) }),
    ...(watchNamespaces && { watchNamespaces: watchNamespaces.bind(core) }),
    ...(finalizerNotes && { finalizerNotes: finalizerNotes.bind(core) }),
  };
}
