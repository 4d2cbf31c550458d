import { compareIds } from '../../resource/index.ts';

interface Named {
  readonly id: string;
}

/** Fewer than this are compared with each other. */
const fewEnough = 24;
/** Bits of a character in a number; all beyond ASCII share the last value. */
const bits = 7;
const beyondAscii = 2 ** bits - 1;
/** Characters in one number. */
const characters = 4;

/**
 * Sorts by the UTF-8 bytes of the ids, in place. Each id is read once: its next eight characters become two numbers, and those are
 * sorted digit by digit, without comparing any two. Only what then is still equal is looked at further.
 */
export function sortById<Entry extends Named>(entries: Entry[], from = 0): void {
  const count = entries.length;
  if (count < fewEnough) return compareAll(entries);
  const start = sharedPrefix(entries, from);
  const high = new Int32Array(count);
  const low = new Int32Array(count);
  for (let place = 0; place < count; place++) {
    const { id } = entries[place] as Entry;
    const word = wordOf(id, start);
    high[place] = word;
    if (!hasLarge(word)) low[place] = wordOf(id, start + characters);
  }
  const order = orderOf(high, low);
  const unsorted = entries.slice();
  let first = 0;
  for (let index = 0; index < count; index++) {
    const place = order[index] as number;
    entries[index] = unsorted[place] as Entry;
    const next = order[index + 1];
    if (next !== undefined && high[place] === high[next] && low[place] === low[next]) continue;
    if (index > first) {
      const large = hasLarge(high[place] as number) || hasLarge(low[place] as number);
      sortGroup(entries, first, index + 1, large ? start : start + 2 * characters);
    }
    first = index + 1;
  }
}

/** The places in order of their numbers, `high` before `low`: a radix sort that begins with the last digit. */
function orderOf(high: Int32Array, low: Int32Array): Int32Array {
  const count = high.length;
  let order = new Int32Array(count);
  for (let place = 0; place < count; place++) order[place] = place;
  let spare = new Int32Array(count);
  const ends = new Int32Array(beyondAscii + 1);
  for (const words of [low, high]) {
    for (let shift = 0; shift < characters * bits; shift += bits) {
      ends.fill(0);
      for (let place = 0; place < count; place++) countOne(ends, ((words[place] as number) >> shift) & beyondAscii);
      // Nothing to move where all are alike.
      if (ends[((words[0] as number) >> shift) & beyondAscii] === count) continue;
      for (let digit = 0, end = 0; digit <= beyondAscii; digit++) {
        const size = ends[digit] as number;
        ends[digit] = end;
        end += size;
      }
      for (let index = 0; index < count; index++) {
        const place = order[index] as number;
        spare[countOne(ends, ((words[place] as number) >> shift) & beyondAscii)] = place;
      }
      [order, spare] = [spare, order];
    }
  }
  return order;
}

/** Counts one more; answers what it was before. */
function countOne(counts: Int32Array, digit: number): number {
  const before = counts[digit] as number;
  counts[digit] = before + 1;
  return before;
}

function compareAll(entries: Named[]): void {
  entries.sort((left, right) => compareIds(left.id, right.id));
}

function sortGroup<Entry extends Named>(entries: Entry[], first: number, next: number, from: number): void {
  const equal = entries.slice(first, next);
  // When the numbers told nothing, all that differs is beyond ASCII.
  if (equal.length === entries.length) compareAll(equal);
  else sortById(equal, from);
  for (let index = 0; index < equal.length; index++) entries[first + index] = equal[index] as Entry;
}

/** The length of what all ids have in common; `from`: so much is known to be. */
function sharedPrefix(entries: readonly Named[], from: number): number {
  const first = (entries[0] as Named).id;
  let shared = first.length;
  for (const { id } of entries) {
    const end = Math.min(shared, id.length);
    let index = from;
    while (index < end && id.charCodeAt(index) === first.charCodeAt(index)) index++;
    shared = index;
  }
  return shared;
}

/**
 * The next characters as one number: 0 where the id has ended (no id holds that character), and after one beyond ASCII, since
 * those share a value and what follows would tell the wrong order.
 */
function wordOf(id: string, start: number): number {
  let word = 0;
  for (let index = start; index < start + characters; index++) {
    const code = index < id.length ? id.charCodeAt(index) : 0;
    if (code >= beyondAscii) return ((word << bits) | beyondAscii) << (bits * (start + characters - 1 - index));
    word = (word << bits) | code;
  }
  return word;
}

/** Whether one of its characters stands for more than one. */
function hasLarge(word: number): boolean {
  for (let rest = word; rest > 0; rest >>= bits) if ((rest & beyondAscii) === beyondAscii) return true;
  return false;
}
