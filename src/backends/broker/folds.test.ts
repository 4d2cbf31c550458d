import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Resource } from '../../resource/index.ts';
import { assembleResource, makeMetadata } from '../../resource/index.ts';
import { Bookmarks } from './bookmark.ts';
import { Commit } from './commit.ts';
import { CommitLog } from './commit-log.ts';
import type { Fold } from './folds.ts';
import { Folds } from './folds.ts';
import { Pending } from './pending.ts';

const bookmarks = new Bookmarks('0'.repeat(32));
const kind = { namespace: 'default', type: 'Things.example.dev' };

type Step =
  | { readonly do: 'drop'; readonly commits: readonly { readonly id: number; readonly kind: 'write' | 'destroy' | 'remake' }[] }
  | { readonly do: 'begin'; readonly after: boolean }
  | { readonly do: 'read' | 'leave'; readonly watcher: number };

const commit = fc.record({
  id: fc.nat(3),
  kind: fc.constantFrom('write' as const, 'write' as const, 'destroy' as const, 'remake' as const),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('drop' as const), commits: fc.array(commit, { minLength: 1, maxLength: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('begin' as const), after: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('read' as const, 'leave' as const), watcher: fc.nat(5) }) },
);

/** The commits of one kind, made step by step. */
class History {
  readonly log = new CommitLog(0);
  readonly all: Commit[] = [];
  readonly #values = new Map<number, Resource>();

  write(id: number, what: 'write' | 'destroy' | 'remake'): void {
    const old = this.#values.get(id);
    if (what !== 'write' && old !== undefined) this.#commit(id, old, undefined, '');
    if (what === 'destroy') return;
    const known = this.#values.get(id);
    this.#commit(id, known, id, known?.metadata.uid ?? '');
  }

  #commit(id: number, old: Resource | undefined, spec: number | undefined, uid: string): void {
    const revision = this.all.length + 1;
    const metadata = makeMetadata({ ...kind, id: `n${id}`, version: String(revision), uid: uid === '' ? String(revision) : uid });
    const value = spec === undefined ? undefined : assembleResource(metadata, revision);
    const made = new Commit(revision, `n${id}`, old, value);
    this.all.push(made);
    this.log.append(made);
    if (value === undefined) this.#values.delete(id);
    else this.#values.set(id, value);
  }
}

const unlimited = () => ({ count: 0, limit: Number.POSITIVE_INFINITY });

/** What a watcher is told, in order. */
function toldBy(pending: Pending): readonly { readonly text: string; readonly revision: number }[] {
  return pending.take(Number.POSITIVE_INFINITY, 0, bookmarks).map((event) => {
    const about = event as { readonly type: string; readonly revision: number; readonly resource: Resource; readonly old?: Resource };
    const { id, version } = about.resource.metadata;
    return { text: `${about.type} ${id} ${version} over ${about.old?.metadata.version ?? 'nothing'}`, revision: about.revision };
  });
}

const textsOf = (events: ReturnType<typeof toldBy>): readonly string[] => events.map(({ text }) => text);

test('whenever a watcher begins and reads, it is told what one that kept everything by itself would be told', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const history = new History();
      const budget = unlimited();
      const folds = new Folds(budget);
      let watchers: { readonly start: Fold; from: number }[] = [];
      let begun: { readonly start: Fold; readonly after: boolean }[] = [];
      for (const each of steps) {
        if (each.do === 'begin') begun.push({ start: each.after ? folds.beginAfter() : folds.begin(), after: each.after });
        else if (each.do === 'drop') {
          const from = history.all.length;
          for (const { id, kind: what } of each.commits) history.write(id, what);
          folds.append(history.log, history.log.end);
          history.log.drop(history.log.size);
          watchers.push(...begun.map(({ start, after }) => ({ start, from: after ? history.all.length : from })));
          begun = [];
        } else {
          const watcher = watchers[each.watcher % Math.max(1, watchers.length)];
          if (watcher === undefined) continue;
          watchers = watchers.filter((other) => other !== watcher);
          if (each.do === 'read') {
            const alone = new Pending(unlimited(), undefined, watcher.from);
            for (const one of history.all.slice(watcher.from)) alone.add(one.id, one);
            const told = new Pending(unlimited(), undefined, watcher.from);
            folds.tell(watcher.start, told);
            const events = toldBy(told);
            // What came and went in one stretch moves nothing, so that only the order within it may differ.
            expect([...textsOf(events)].sort()).toEqual([...textsOf(toldBy(alone))].sort());
            const revisions = events.map(({ revision }) => revision);
            expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
          }
          folds.release(watcher.start);
        }
        expect(budget.count).toBe(folds.size);
      }
      for (const { start } of [...watchers, ...begun]) folds.release(start);
      expect(folds.size).toBe(0);
      expect(budget.count).toBe(0);
    }),
    { numRuns: 500 },
  );
});

test('above the limit what lives is left out, and what went is not', () => {
  const history = new History();
  for (let id = 0; id < 3; id++) history.write(id, 'write');
  history.log.drop(3);
  const budget = { count: 0, limit: 3 };
  const folds = new Folds(budget);
  const start = folds.begin();
  history.write(0, 'destroy');
  for (let id = 10; id < 20; id++) history.write(id, 'write');
  history.write(1, 'remake');
  history.write(12, 'destroy');
  folds.append(history.log, history.log.end);
  expect(budget.count).toBe(2);
  const pending = new Pending(unlimited(), undefined, start.since);
  folds.tell(start, pending);
  expect(pending.snapshotNeeded).toBe(true);
  expect(textsOf(toldBy(pending))).toEqual(['destroyed n0 1 over nothing', 'destroyed n1 2 over nothing']);
  folds.release(start);
  expect(budget.count).toBe(0);
});

test('what lives when the cap is reached is left to the snapshot, also the very one that reaches it', () => {
  const budget = { count: 0, limit: 1 };
  const folds = new Folds(budget);
  const history = new History();
  const start = folds.begin();
  history.write(1, 'write');
  folds.append(history.log, history.log.end);
  // Another watcher fills what is left.
  budget.count++;
  history.write(1, 'write');
  folds.append(history.log, history.log.end);
  const pending = new Pending({ count: 0, limit: 100 }, undefined, start.since);
  folds.tell(start, pending);
  expect(pending.snapshotNeeded).toBe(true);
  expect(pending.size).toBe(0);
});
