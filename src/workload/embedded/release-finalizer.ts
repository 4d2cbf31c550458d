import type { Environment } from '../../environment/index.ts';
import type { Pointer, Resource } from '../../resource/index.ts';
import {
  boundedText,
  digest,
  errorCode,
  isNotFoundError,
  isUnsupportedError,
  pointerText,
  SteadystateError,
  thrownText,
  visibleText,
} from '../../resource/index.ts';
import type { State } from '../../state/index.ts';
import { incarnationConflict } from '../../state/index.ts';
import { noteLimit } from '../conditions.ts';
import type { EventSpec, FinalizerRelease } from './event-log.ts';
import { eventDefinition, eventId } from './event-log.ts';

/** Owner of the records: nobody changes or removes them in passing. */
export const auditOwner = 'audit';

/** Annotation that remembers releases on the resource itself, written together with the removal. */
export const releasedAnnotation = 'steadystate.dev/released-finalizers';

const longestName = 256;

export interface ReleaseRequest {
  readonly finalizer: string;
  /** Only this incarnation; absent: the one that is there now. */
  readonly uid?: string;
  /** Who asks, as they tell it; goes into the record. */
  readonly by: string;
  /** What the caller knows of the holder, for the record, beside what the store remembers. */
  readonly holder?: string;
}

/** What a release did. */
export interface Released {
  /** The resource without the finalizer; `undefined`: it has gone since. */
  readonly resource: Resource | undefined;
  /** The event that keeps who did it. */
  readonly record: Resource<EventSpec>;
}

/**
 * Takes a finalizer away in the name of a holder that never comes back; what that would have cleaned up stays. Who did it is
 * in the store before it is done, with the outcome after it: `recorded` events with the reasons FinalizerReleasing,
 * FinalizerReleased and FinalizerReleaseFailed. A write whose answer is lost is looked up and never sent again.
 *
 * NotFound when the resource or the finalizer is not there, Conflict when it is another incarnation, Ambiguous when
 * nobody can tell whether it happened.
 */
export async function releaseFinalizer(
  state: State,
  environment: Pick<Environment, 'timestamp' | 'id' | 'log'>,
  pointer: Pointer,
  request: ReleaseRequest,
): Promise<Released> {
  const before = await state.get(pointer);
  check(before, request);
  const remembered = await rememberedHolder(state, pointer, request.finalizer);
  const holder = [remembered, request.holder].filter((text) => text !== undefined && text !== '').join('; ') || 'nobody known here';
  const record = await state.create(recordOf(before, { ...request, holder }, environment), { owner: auditOwner });
  const { uid, owner } = before.metadata;
  environment.log.log('warn', `finalizer ${request.finalizer} of ${pointerText(pointer)} is released by hand`, {
    by: request.by,
    record: record.metadata.id,
  });
  try {
    const resource = await state.updateWithConflicts(
      pointer,
      (draft) => {
        // Tried again after somebody else's write: what was true before has to be true still.
        check(draft, { ...request, uid });
        draft.finalizers.remove(request.finalizer);
        const note = `${request.finalizer} by ${named(request.by)} at ${environment.timestamp()}`;
        const earlier = draft.annotations.get(releasedAnnotation);
        draft.annotations.set(releasedAnnotation, earlier === undefined ? note : `${earlier}; ${note}`);
      },
      { owner, expectedPhase: 'any' },
    );
    return { resource, record: await conclude(state, record, 'released') };
  } catch (error) {
    const outcome = errorCode(error) === 'Ambiguous' ? await lookUp(state, pointer, uid, request.finalizer) : undefined;
    if (outcome !== undefined) return { ...outcome, record: await conclude(state, record, 'released') };
    const found = thrownText(error);
    await conclude(state, record, errorCode(error) === 'Ambiguous' ? 'unknown' : 'failed', found).catch((cause: unknown) => {
      // The record says that it was begun, which is true; the first error is the one to tell.
      environment.log.log('error', `the outcome of ${record.metadata.id} could not be recorded`, { error: cause });
    });
    throw error;
  }
}

function check({ metadata }: { readonly metadata: Resource['metadata'] }, { finalizer, uid }: ReleaseRequest): void {
  if (uid !== undefined && uid !== '' && uid !== metadata.uid) throw incarnationConflict(metadata, uid, metadata.uid);
  if (metadata.finalizers.includes(finalizer)) return;
  const has = metadata.finalizers.length === 0 ? 'none' : metadata.finalizers.map(visibleText).join(', ');
  throw new SteadystateError('NotFound', `${pointerText(metadata)} has no finalizer ${visibleText(finalizer)}; it has ${has}`, {
    pointer: metadata,
  });
}

/** Who put it there and since when, where the store remembers. */
async function rememberedHolder(state: State, pointer: Pointer, finalizer: string): Promise<string | undefined> {
  try {
    const note = (await state.finalizerNotes?.(pointer))?.find((each) => each.finalizer === finalizer);
    if (note === undefined) return undefined;
    return `${visibleText(note.actor === '' ? 'somebody' : note.actor)}${note.since === '' ? '' : ` since ${note.since}`}`;
  } catch (error) {
    if (isNotFoundError(error) || isUnsupportedError(error)) return undefined;
    throw error;
  }
}

function named(by: string): string {
  const text = visibleText(by);
  return text === '' ? 'unknown' : boundedText(text, longestName, '…');
}

function recordOf(
  { metadata }: Resource,
  { finalizer, by, holder }: ReleaseRequest & { readonly holder: string },
  environment: Pick<Environment, 'timestamp' | 'id'>,
): Resource<EventSpec> {
  const { namespace, type, id, uid, version, phase, owner, finalizers } = metadata;
  const at = environment.timestamp();
  const release: FinalizerRelease = { finalizer, by: named(by), holder, uid, version, phase, owner, finalizers, outcome: 'begun' };
  return eventDefinition.create({
    id: eventId(id, digest([type, uid, finalizer, environment.id()])),
    namespace,
    spec: {
      type: 'Warning',
      reason: 'FinalizerReleasing',
      note: noteOf(release),
      regarding: { type, namespace, id },
      count: 1,
      firstSeen: at,
      lastSeen: at,
      release,
    },
  });
}

const verbs = {
  begun: 'is being released',
  released: 'was released',
  failed: 'was not released',
  unknown: 'may have been released',
} as const;
const reasons = {
  begun: 'FinalizerReleasing',
  released: 'FinalizerReleased',
  failed: 'FinalizerReleaseFailed',
  unknown: 'FinalizerReleaseFailed',
} as const;

function noteOf({ finalizer, uid, by, holder, outcome }: FinalizerRelease, error?: string): string {
  const why = error === undefined ? '' : `: ${visibleText(boundedText(error, noteLimit))}`;
  return `finalizer ${visibleText(finalizer)} of incarnation ${uid === '' ? 'unknown' : uid} ${verbs[outcome]} by ${by} (held by ${holder})${why}`;
}

function conclude(
  state: State,
  record: Resource<EventSpec>,
  outcome: FinalizerRelease['outcome'],
  error?: string,
): Promise<Resource<EventSpec>> {
  return state.updateWithConflicts(
    eventDefinition.pointer(record.metadata.id, record.metadata.namespace),
    (draft) => {
      const release = { ...(record.spec.release as FinalizerRelease), outcome };
      draft.spec.release = { ...release, finalizers: [...release.finalizers] };
      draft.spec.reason = reasons[outcome];
      draft.spec.note = noteOf(release, error);
    },
    { owner: auditOwner },
  );
}

/** Whether a write whose answer was lost has happened; `undefined`: it has not, or nobody can tell. */
async function lookUp(
  state: State,
  pointer: Pointer,
  uid: string,
  finalizer: string,
): Promise<{ readonly resource: Resource | undefined } | undefined> {
  try {
    const resource = await state.get(pointer);
    if (resource.metadata.uid !== uid) return { resource: undefined };
    return resource.metadata.finalizers.includes(finalizer) ? undefined : { resource };
  } catch (error) {
    return isNotFoundError(error) ? { resource: undefined } : undefined;
  }
}
