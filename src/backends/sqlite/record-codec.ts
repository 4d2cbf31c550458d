import type { Kind, Metadata, Resource } from '../../resource/index.ts';
import { assembleMetadata, assembleResource, Bytes, freezeSpec } from '../../resource/index.ts';
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
  return JSON.stringify([head, isPlainJson(spec) ? spec : toTagged(spec)]);
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

/** Whether JSON says all of it: no bigint, no bytes, no key that looks like one of our tags. */
function isPlainJson(value: unknown): boolean {
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (Bytes.is(value)) return false;
  if (Array.isArray(value)) return value.every(isPlainJson);
  for (const key of Object.keys(value)) {
    if (key.startsWith('$') || !isPlainJson((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

function toTagged(value: unknown): unknown {
  if (typeof value === 'bigint') return { $integer: String(value) };
  if (typeof value !== 'object' || value === null) return value;
  if (Bytes.is(value)) return { $bytes: value.toBase64() };
  if (Array.isArray(value)) return value.map(toTagged);
  // A key of the user's that begins with $ gets one more.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.startsWith('$') ? `$${key}` : key, toTagged(item)]));
}

function fromTagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(fromTagged);
  const { $integer, $bytes } = value as { readonly $integer?: unknown; readonly $bytes?: unknown };
  if (typeof $integer === 'string') return BigInt($integer);
  if (typeof $bytes === 'string') return Bytes.from(Buffer.from($bytes, 'base64'));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.startsWith('$$') ? key.slice(1) : key, fromTagged(item)]));
}
