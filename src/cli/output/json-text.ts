import { Bytes } from '../../resource/index.ts';

/** JSON text of plain data: integers beyond 2^53 as they are, bytes as base64. `indent` 0 keeps it on one line. */
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
  return integers.length === 0
    ? text
    : text.replace(/"\\u0000integer:([0-9]+)"/g, (_match, place: string) => integers[Number(place)] as string);
}
