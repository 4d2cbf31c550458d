import type { WireTimestamp } from './messages.ts';

const form = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?Z$/;
const canonical = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

interface Reading {
  readonly text: string;
  readonly timestamp: WireTimestamp | undefined;
}

/** What was read last, and before that: the two times of a resource are the same, or close to those of the resource before. */
let last: Reading = { text: '', timestamp: undefined };
let other: Reading = last;

/** RFC 3339 text in UTC → protobuf; `undefined` for empty or other text. */
export function toTimestamp(text: string): WireTimestamp | undefined {
  if (text === last.text) return last.timestamp;
  const found = text === other.text ? other : { text, timestamp: readTimestamp(text) };
  other = last;
  last = found;
  return found.timestamp;
}

function readTimestamp(text: string): WireTimestamp | undefined {
  // The form that clocks give, which the language reads many times faster. What it does not take is counted below.
  if (text.length === 24 && canonical.test(text)) {
    const millis = Date.parse(text);
    const rest = ((millis % 1000) + 1000) % 1000;
    if (!Number.isNaN(millis)) return { seconds: (millis - rest) / 1000, nanos: rest * 1e6 };
  }
  const parts = form.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = ''] = parts;
  const seconds =
    daysSinceEpoch(Number(year), Number(month), Number(day)) * 86_400 + Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  return { seconds, nanos: Number(fraction.padEnd(9, '0')) };
}

/** What the protocol allows: the years 1 to 9999, in seconds. */
const earliest = -62_135_596_800;
const latest = 253_402_300_799;

/** Protobuf → RFC 3339 text in UTC, with as many digits as are needed: 0, 3, 6 or 9. Empty for what is no time there. */
export function fromTimestamp(timestamp: WireTimestamp | undefined): string {
  if (timestamp === undefined) return '';
  const { seconds, nanos } = timestamp;
  if (seconds < earliest || seconds > latest || nanos < 0 || nanos > 999_999_999) return '';
  const millis = nanos / 1e6;
  // What the language can tell by itself: whole milliseconds.
  if (Number.isInteger(millis)) {
    const text = new Date(seconds * 1000 + millis).toISOString();
    return millis === 0 ? `${text.slice(0, 19)}Z` : text;
  }
  const days = Math.floor(seconds / 86_400);
  const rest = seconds - days * 86_400;
  const { year, month, day } = civilDate(days);
  const pad = (value: number, length = 2): string => String(value).padStart(length, '0');
  const digits = nanos === 0 ? '' : `.${pad(nanos, 9).replace(/(?:000){1,2}$/, '')}`;
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(Math.floor(rest / 3600))}:${pad(Math.floor(rest / 60) % 60)}:${pad(rest % 60)}${digits}Z`;
}

/** Days from 1970-01-01 to a date of the Gregorian calendar, counted in eras of 400 years that begin in March. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468;
}

function civilDate(days: number): { readonly year: number; readonly month: number; readonly day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9);
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1 };
}
