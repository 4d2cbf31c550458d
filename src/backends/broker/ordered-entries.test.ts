import { expect, test } from 'vitest';
import { OrderedEntries } from './ordered-entries.ts';

/** Counts how often somebody looks at it. */
class Looked {
  static looks = 0;
  readonly id: string;
  here = true;
  constructor(id: string) {
    this.id = id;
  }
  get present(): boolean {
    Looked.looks++;
    return this.here;
  }
}

test('what comes and goes without a list does not pile up', () => {
  const entries = new OrderedEntries<Looked>();
  const kept = Array.from({ length: 10 }, (_, index) => new Looked(`kept-${index}`));
  for (const entry of kept) entries.add(entry);
  for (let index = 0; index < 50_000; index++) {
    const brief = new Looked(`brief-${index}`);
    entries.add(brief);
    brief.here = false;
    entries.noteGone();
  }
  // To keep it so costs no more than a few looks for each.
  expect(Looked.looks).toBeLessThan(200_000);
  Looked.looks = 0;
  const seen: string[] = [];
  entries.forEach(({ id }) => seen.push(id));
  expect(seen).toEqual(kept.map(({ id }) => id));
  expect(Looked.looks).toBeLessThan(3_000);
});

test('those that went after a list are forgotten too, and those that stay keep their order', () => {
  const entries = new OrderedEntries<Looked>();
  const all = Array.from({ length: 10_000 }, (_, index) => new Looked(String(index).padStart(5, '0')));
  for (const entry of all) entries.add(entry);
  entries.forEach(() => {});
  for (const [index, entry] of all.entries()) {
    if (index % 100 === 0) continue;
    entry.here = false;
    entries.noteGone();
  }
  Looked.looks = 0;
  const seen: string[] = [];
  entries.forEach(({ id }) => seen.push(id));
  expect(seen).toEqual(all.filter((_, index) => index % 100 === 0).map(({ id }) => id));
  expect(Looked.looks).toBeLessThan(1_500);
});
