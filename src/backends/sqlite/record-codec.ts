import type { Kind, Metadata, Resource } from '../../resource/index.ts';
import { assembleMetadata, assembleResource, freezeSpec, fromTagged, toTagged } from '../../resource/index.ts';
import type { FinalizerNote } from '../../state/index.ts';
import { finalizerNotesOf, restoreFinalizerNotes } from '../broker/index.ts';

/** What the row of a record knows of it. */
export interface RecordPlace {
  readonly kind: Kind;
  readonly id: string;
  readonly uid: number;
  readonly version: number;
}

/**
 * Text of one stored resource: what its row does not say of the metadata, as a list, then its spec. At the end of the list, where
 * there are finalizers: since when, and who put each there, which the metadata does not tell.
 */
export function encodeRecord(resource: Resource): string {
  const { phase, owner, finalizers, labels, annotations, created, updated } = resource.metadata;
  const { spec } = resource;
  const head: unknown[] = [phase === 'running' ? 0 : 1, owner, finalizers, labels, annotations, created, updated];
  if (finalizers.length > 0) head.push(finalizerNotesOf(resource).map(({ since, actor }) => [since, actor]));
  return JSON.stringify([head, toTagged(spec)]);
}

/** The resource of a record. Throws when the text is not one. */
export function decodeRecord({ kind, id, uid, version }: RecordPlace, text: string): Resource {
  const [head, spec] = JSON.parse(text) as [
    [number, string, readonly string[], Metadata['labels'], Metadata['annotations'], string, string, ...([NotesText] | [])],
    unknown,
  ];
  const [phase, owner, finalizers, labels, annotations, created, updated, notes] = head;
  const metadata = assembleMetadata({
    namespace: kind.namespace,
    type: kind.type,
    id,
    version: String(version),
    uid: String(uid),
    phase: phase === 0 ? 'running' : 'tearingDown',
    owner,
    finalizers: Object.freeze(finalizers),
    labels: Object.freeze(labels),
    annotations: Object.freeze(annotations),
    created,
    updated,
  });
  const resource = assembleResource(metadata, freezeSpec(text.includes('"$') ? fromTagged(spec) : spec));
  if (notes !== undefined) restoreFinalizerNotes(resource, notesOf(finalizers, notes));
  return resource;
}

/** Since when, and who put it there, of each finalizer. */
type NotesText = readonly (readonly [since: string, actor: string])[];

function notesOf(finalizers: readonly string[], notes: NotesText): readonly FinalizerNote[] {
  return Object.freeze(
    finalizers.map((finalizer, index) => {
      const [since, actor] = notes[index] as NotesText[number];
      return Object.freeze({ finalizer, since, actor });
    }),
  );
}
