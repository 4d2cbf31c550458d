import { compareIds } from '../../resource/index.ts';

interface Named {
  readonly id: string;
}

/** Fewer than this are compared with each other. */
const fewEnough = 24;
/** Bits of a character in a number; all beyond ASCII share the last value. */
const bits = 7;
const beyondAscii = 2 ** bits - 1;
/** Bits of a whole number. */
const wholeBits = 53;

/**
 * Sorts by the UTF-8 bytes of the ids, in place. Numbers made of the next few characters and the place are sorted instead of text,
 * which reads each id once and not at each of its many comparisons; only what then is still equal is looked at further.
 */
export function sortById<Entry extends Named>(entries: Entry[], from = 0): void {
  if (entries.length < fewEnough) return compareAll(entries);
  const places = 2 ** Math.ceil(Math.log2(entries.length));
  const characters = Math.floor((wholeBits - Math.log2(places)) / bits);
  const start = sharedPrefix(entries, from);
  const keys = new Float64Array(entries.length);
  for (let place = 0; place < entries.length; place++)
    keys[place] = keyOf((entries[place] as Entry).id, start, characters) * places + place;
  keys.sort();
  const unsorted = entries.slice();
  let first = 0;
  let group = -1;
  for (let index = 0; index <= keys.length; index++) {
    const whole = keys[index] ?? -1;
    const key = Math.floor(whole / places);
    if (key !== group) {
      if (index - first > 1) sortGroup(entries, first, index, hasLarge(group) ? start : start + characters);
      first = index;
      group = key;
    }
    if (index < keys.length) entries[index] = unsorted[whole - key * places] as Entry;
  }
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

/** The next characters as one number: 0 where the id has ended (no id holds that character). */
function keyOf(id: string, start: number, characters: number): number {
  let key = 0;
  for (let index = start; index < start + characters; index++)
    key = key * 2 ** bits + (index < id.length ? Math.min(id.charCodeAt(index), beyondAscii) : 0);
  return key;
}

/** Whether one of its characters stands for more than one. */
function hasLarge(key: number): boolean {
  for (let rest = key; rest > 0; rest = Math.floor(rest / 2 ** bits)) if (rest % 2 ** bits === beyondAscii) return true;
  return false;
}
