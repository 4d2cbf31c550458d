import type { Resource } from '../../resource/index.ts';
import type { FinalizerNote } from '../../state/index.ts';

// Kept by the value itself, so that a write that never becomes durable takes its notes with it. Only what has finalizers is in here.
const notes = new WeakMap<Resource, readonly FinalizerNote[]>();

/** Notes who holds a value that is about to be written: what it kept of the value before, and what this write adds. */
export function noteFinalizers(value: Resource, old: Resource | undefined, actor: string): void {
  const { finalizers, updated } = value.metadata;
  if (finalizers.length === 0) return;
  const before = old === undefined ? [] : finalizerNotesOf(old);
  if (before.length === finalizers.length && before.every((note, index) => note.finalizer === finalizers[index])) {
    notes.set(value, before);
    return;
  }
  const known = new Map(before.map((note) => [note.finalizer, note]));
  notes.set(
    value,
    Object.freeze(finalizers.map((finalizer) => known.get(finalizer) ?? Object.freeze({ finalizer, since: updated, actor }))),
  );
}

/** What is remembered of each finalizer of a value. */
export function finalizerNotesOf(value: Resource): readonly FinalizerNote[] {
  return (
    notes.get(value) ?? Object.freeze(value.metadata.finalizers.map((finalizer) => Object.freeze({ finalizer, since: '', actor: '' })))
  );
}

/** Puts back what was remembered of a value on disk. */
export function restoreFinalizerNotes(value: Resource, remembered: readonly FinalizerNote[]): void {
  notes.set(value, remembered);
}
