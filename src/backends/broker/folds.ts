import type { Resource } from '../../resource/index.ts';
import type { Commit } from './commit.ts';
import type { CommitLog } from './commit-log.ts';
import type { Pending, PendingBudget } from './pending.ts';

/** What happened to one id in a stretch of commits. */
interface FoldEntry {
  /** The value before the stretch. */
  readonly old: Resource | undefined;
  /** The value after it. */
  readonly value: Resource | undefined;
  readonly revision: number;
}

/** A stretch of commits that have left the log, by id, ordered by the newest revision of each. */
export class Fold {
  readonly entries = new Map<string, FoldEntry>();
  /** Watchers whose unread history begins here. */
  starts = 0;
  /** Everything at or below this revision came before. */
  since = 0;
  /** Above the store's limit only what went is kept; what lives must be read from the contents. */
  lossy = false;
  previous: Fold | undefined;
  next: Fold | undefined;
}

/**
 * What left the log of one kind while watchers have not read it: folded once for all of them, so that a watcher that stalls
 * costs the writer nothing. A boundary between two folds is there only while somebody's history begins at it.
 */
export class Folds {
  readonly #budget: PendingBudget;
  #last: Fold | undefined;
  /** What the next drop is folded into. */
  #coming = new Fold();
  /** And the drop after that one. */
  #following: Fold | undefined;
  /** Place in the log up to which everything was dropped, and its revision. */
  end = Number.NEGATIVE_INFINITY;
  lastRevision = 0;

  constructor(budget: PendingBudget) {
    this.#budget = budget;
  }

  /** Entries that are kept. */
  get size(): number {
    let size = 0;
    for (let fold = this.#last; fold !== undefined; fold = fold.previous) size += fold.entries.size;
    return size;
  }

  /** The history of a watcher begins with the drop that is about to happen. */
  begin(): Fold {
    this.#coming.starts++;
    return this.#coming;
  }

  /** The history of a watcher begins after the drop that is about to happen. */
  beginAfter(): Fold {
    this.#following ??= new Fold();
    this.#following.starts++;
    return this.#following;
  }

  /** Commits up to `place` are about to leave the log. */
  append(log: CommitLog, place: number): void {
    const commits = log.slice(Math.max(log.start, this.end), place);
    const fold = this.#coming;
    this.end = place;
    this.lastRevision = commits.at(-1)?.revision ?? this.lastRevision;
    this.#coming = this.#following ?? new Fold();
    this.#following = undefined;
    if (fold.starts === 0) {
      // Nobody's history begins here: what stands before goes on.
      if (this.#last !== undefined) for (const commit of commits) this.#add(this.#last, commit.id, commit);
      return;
    }
    fold.since = commits[0] === undefined ? this.lastRevision : commits[0].revision - 1;
    fold.previous = this.#last;
    if (this.#last !== undefined) this.#last.next = fold;
    this.#last = fold;
    for (const commit of commits) this.#add(fold, commit.id, commit);
  }

  /** Tells a watcher all that happened since its history began. */
  tell(start: Fold, pending: Pending): void {
    if (start === this.#coming) return;
    // What nobody else will ask for moves over, so that it does not count twice.
    const isLast = start.previous === undefined && start.starts === 1;
    for (let fold: Fold | undefined = start; fold !== undefined; fold = fold.next) {
      if (fold.lossy) pending.leaveOutLiving();
      for (const [id, { old, value, revision }] of fold.entries) {
        if (isLast && fold === start) this.#remove(fold, id);
        if (fold.lossy) pending.addGone(id, old as Resource, revision);
        else if (isReplaced(old, value)) {
          pending.add(id, { old, value: undefined, revision });
          pending.add(id, { old: undefined, value, revision });
        } else pending.add(id, { old, value, revision });
      }
    }
  }

  /** A watcher has read on, or is gone. */
  release(start: Fold): void {
    start.starts--;
    if (start !== this.#coming) this.#unlessStart(start);
  }

  /** A fold at which nobody's history begins goes into the one before it, or away. */
  #unlessStart(fold: Fold): void {
    if (fold.starts > 0) return;
    const { previous, next } = fold;
    if (previous !== undefined) previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    this.#budget.count -= fold.entries.size;
    if (previous !== undefined) this.#merge(previous, fold);
  }

  #add(fold: Fold, id: string, change: FoldEntry | Commit): void {
    const { entries } = fold;
    const { old, value, revision } = change;
    const known = entries.get(id);
    const first = known === undefined ? old : known.old;
    if (known !== undefined) this.#remove(fold, id);
    if (first === undefined && value === undefined) return;
    const wasLossy = fold.lossy;
    if (!wasLossy && this.#budget.count >= this.#budget.limit) this.#loseLiving();
    if (!fold.lossy) this.#keep(fold, id, first === old ? change : { old: first, value, revision });
    // What was known to have gone stays known, whatever came in its place.
    else if (known !== undefined && wasLossy) this.#keep(fold, id, known);
    else if (isGone(first, value, fold.since)) this.#keep(fold, id, { old: first, value: undefined, revision });
  }

  #keep({ entries }: Fold, id: string, entry: FoldEntry): void {
    entries.set(id, entry);
    this.#budget.count++;
  }

  #remove({ entries }: Fold, id: string): void {
    if (entries.delete(id)) this.#budget.count--;
  }

  #merge(into: Fold, fold: Fold): void {
    if (fold.lossy) this.#leaveOutLiving(into);
    for (const [id, entry] of fold.entries) this.#add(into, id, entry);
  }

  /** The store's limit is reached. */
  #loseLiving(): void {
    for (let fold = this.#last; fold !== undefined; fold = fold.previous) this.#leaveOutLiving(fold);
  }

  #leaveOutLiving(fold: Fold): void {
    if (fold.lossy) return;
    fold.lossy = true;
    for (const [id, { old, value, revision }] of [...fold.entries]) {
      this.#remove(fold, id);
      if (isGone(old, value, fold.since)) this.#keep(fold, id, { old, value: undefined, revision });
    }
  }
}

function isReplaced(old: Resource | undefined, value: Resource | undefined): boolean {
  return old !== undefined && value !== undefined && old.metadata.uid !== value.metadata.uid;
}

/** Whether an incarnation went that somebody may know of. */
function isGone(old: Resource | undefined, value: Resource | undefined, since: number): boolean {
  return old !== undefined && (value === undefined || isReplaced(old, value)) && Number(old.metadata.uid) <= since;
}
