import type { Pointer, Resource } from '../resource/index.ts';
import { isNotFoundError, isUnsupportedError } from '../resource/index.ts';
import type { FinalizerNote } from '../state/index.ts';
import type { ControllerNote } from '../wire/index.ts';
import type { Session } from './session.ts';

/** Who holds a resource by one finalizer, since when, and why. */
export interface Holder {
  readonly finalizer: string;
  /** Who put it there; a controller puts its own name. */
  readonly actor: string;
  /** RFC 3339; empty: not known. */
  readonly since: string;
  /** What its controller says, or that there is none. */
  readonly because: string;
  /** No controller of that name runs here. */
  readonly retired: boolean;
}

/** Everybody who holds a resource, in the order of its finalizers. */
export async function holdersOf(session: Session, { metadata }: Resource): Promise<readonly Holder[]> {
  if (metadata.finalizers.length === 0) return [];
  const [remembered, said, names] = await Promise.all([
    notesOf(session, metadata),
    session.control?.notes(metadata) ?? [],
    controllersOf(session),
  ]);
  return metadata.finalizers.map((finalizer) => {
    const { since, actor } = remembered.find((note) => note.finalizer === finalizer) ?? { since: '', actor: '' };
    const isHolder = (name: string): boolean => name === finalizer || name === actor;
    const retired = names !== undefined && !names.some(isHolder);
    const note = said.find(({ controller }) => isHolder(controller));
    return {
      finalizer,
      actor: actor === '' ? finalizer : actor,
      since,
      because: metadata.phase === 'running' ? 'it is in use' : becauseOf(note, names, retired),
      retired,
    };
  });
}

function becauseOf(note: ControllerNote | undefined, names: readonly string[] | undefined, retired: boolean): string {
  if (names === undefined) return 'its holder has not removed it yet';
  if (retired) return names.length === 0 ? 'no controller runs here now' : 'no controller of this name runs here';
  if (note === undefined) return 'its controller has not removed it yet, and says nothing of it';
  if (note.failures > 0) return `its controller failed ${note.failures} times in a row: ${note.lastError}`;
  if (note.blockedBecause !== '') return note.blockedBecause;
  return note.running === '' ? 'its controller runs again soon' : 'its controller is at work on it';
}

async function notesOf({ state }: Session, pointer: Pointer): Promise<readonly FinalizerNote[]> {
  try {
    return (await state.finalizerNotes?.(pointer)) ?? [];
  } catch (error) {
    // It went meanwhile, or its store remembers no such thing.
    if (isNotFoundError(error) || isUnsupportedError(error)) return [];
    throw error;
  }
}

/** The names of the controllers that run; `undefined`: nobody can tell. */
async function controllersOf({ control, url }: Session): Promise<readonly string[] | undefined> {
  // A file that this program has opened by itself has no controllers meanwhile.
  if (control === undefined) return url.kind === 'sqlite' ? [] : undefined;
  const graph = JSON.parse(await control.graph()) as { readonly controllers: readonly { readonly name: string }[] };
  return graph.controllers.map(({ name }) => name);
}
