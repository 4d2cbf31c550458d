import { Bytes, replaceHidden } from '../../resource/index.ts';

/** JSON text of plain data: integers beyond 2^53 as they are, bytes as base64; what a terminal would obey is escaped. `indent` 0 keeps it on one line. */
export function jsonText(value: unknown, indent = 2): string {
  const integers: string[] = [];
  // A placeholder that no text can hold stands for an integer that JSON.stringify refuses.
  const mark = '\u0000integer:';
  const text = JSON.stringify(
    value,
    (_key, item: unknown) => {
      if (typeof item === 'bigint') return `${mark}${integers.push(String(item)) - 1}`;
      return Bytes.is(item) ? item.toBase64() : item;
    },
    indent,
  );
  // Inside strings, where alone they can be, an escape is the same character.
  const shown = replaceHidden(text, (code) =>
    code < 0x20 ? String.fromCharCode(code) : String.fromCodePoint(code).split('').map(escaped).join(''),
  );
  return integers.length === 0
    ? shown
    : shown.replace(/"\\u0000integer:([0-9]+)"/g, (_match, place: string) => integers[Number(place)] as string);
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
