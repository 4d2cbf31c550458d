import { compareIds } from '../../resource/index.ts';

interface Named {
  readonly id: string;
}

/** Fewer than this are compared with each other. */
const fewEnough = 48;
/** Characters that make one number of 32 bits. */
const charactersAtOnce = 4;
/** Places that fit beside them into the 53 bits of a number that is a whole one. */
const maximumPlaces = 2 ** 21;

/**
 * Sorts by the UTF-8 bytes of the ids, in place. Numbers made of the next few characters are sorted instead of text, which reads
 * each id once and not at each of its many comparisons; only what then is still equal is looked at further.
 */
export function sortById<Entry extends Named>(entries: Entry[], from = 0): void {
  if (entries.length < fewEnough || entries.length > maximumPlaces) return compareAll(entries);
  const start = sharedPrefix(entries, from);
  const keys = new Float64Array(entries.length);
  for (let place = 0; place < entries.length; place++) keys[place] = keyOf((entries[place] as Named).id, start) * maximumPlaces + place;
  keys.sort();
  const sorted = Array.from(keys, (key) => entries[key % maximumPlaces] as Entry);
  for (let first = 0, next = 1; first < sorted.length; first = next++) {
    const key = upper(keys[first] as number);
    while (next < sorted.length && upper(keys[next] as number) === key) next++;
    if (next - first === 1) {
      entries[first] = sorted[first] as Entry;
      continue;
    }
    // The numbers tell nothing: all that differs is beyond Latin.
    if (next - first === entries.length) return compareAll(entries);
    const equal = sorted.slice(first, next);
    // Beyond Latin the number does not tell all: those are compared from where they began.
    sortById(equal, hasLarge(key) ? start : start + charactersAtOnce);
    for (let index = 0; index < equal.length; index++) entries[first + index] = equal[index] as Entry;
  }
}

function compareAll(entries: Named[]): void {
  entries.sort((left, right) => compareIds(left.id, right.id));
}

function upper(key: number): number {
  return Math.floor(key / maximumPlaces);
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

/** The next characters as one number: 0 where the id has ended (no id holds that character), 255 for all beyond Latin. */
function keyOf(id: string, start: number): number {
  let key = 0;
  for (let index = start; index < start + charactersAtOnce; index++)
    key = key * 256 + (index < id.length ? Math.min(id.charCodeAt(index), 255) : 0);
  return key;
}

/** Whether one of its characters stands for more than one. */
function hasLarge(key: number): boolean {
  for (let rest = key; rest > 0; rest = Math.floor(rest / 256)) if (rest % 256 === 255) return true;
  return false;
}
