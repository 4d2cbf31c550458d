export { Bookmarks } from './bookmark.ts';
export type { BrokerOptions } from './broker.ts';
export { Broker } from './broker.ts';
export type { EncodedResource } from './collection.ts';
export { Commit } from './commit.ts';
export type { CommitRecord, Committer } from './committer.ts';
export { finalizerNotesOf, restoreFinalizerNotes } from './finalizer-notes.ts';
