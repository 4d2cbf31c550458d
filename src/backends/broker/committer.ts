import type { Kind, Resource } from '../../resource/index.ts';
import type { Commit } from './commit.ts';

/** One write on its way to the disk. */
export interface CommitRecord {
  readonly kind: Kind;
  readonly revision: number;
  readonly id: string;
  /** `undefined`: destroyed. */
  readonly value: Resource | undefined;
  readonly old: Resource | undefined;
}

/** What makes writes durable, and remembers older commits. Absent for a store in memory. */
export interface Committer {
  /** Resolves once all records are durable, in one step: all or none. Rejects with a typed error. */
  commit(records: readonly CommitRecord[]): Promise<void>;
  /** Commits of a kind between two revisions (the first excluded), oldest first. */
  history(kind: Kind, afterRevision: number, upToRevision: number): Promise<readonly Commit[]>;
  /** Everything at or below this revision is no longer in the history. */
  readonly historyFloor: number;
}
