/** Columns that text takes on a terminal: wide East Asian characters and emoji two, combining marks none. */
export function textWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += segmentWidth(segment);
  return width;
}

function segmentWidth(segment: string): number {
  if (wide.test(segment) || emojiStyle.test(segment)) return 2;
  // What is joined to a letter and is no mark has a column of its own: vowels of Thai, half-width voice marks.
  return [...segment].filter((character) => !zero.test(character)).length;
}

const plain = /^[\x20-\x7e]*$/;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
const wide =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** A sign that is asked to look like an emoji. */
const emojiStyle = /\p{Emoji}\ufe0f/u;
const zero = /[\p{Mark}\u200c\u200d]/u;

/** Cuts text so that it takes at most `columns`, with an ellipsis where something was cut. */
export function cutText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let cut = '';
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = segmentWidth(segment);
    if (width + next > columns - 1) break;
    cut += segment;
    width += next;
  }
  return `${cut}…`;
}

/** Cuts text in its middle: ids differ at both ends. */
export function cutMiddle(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  const segments = [...segmenter.segment(text)].map(({ segment }) => segment);
  let [start, end, room] = [0, segments.length, columns - 1];
  // From both ends in turn, the start first.
  for (let front = true; ; front = !front) {
    const next = segmentWidth(segments[front ? start : end - 1] as string);
    if (next > room) break;
    room -= next;
    if (front) start++;
    else end--;
  }
  return `${segments.slice(0, start).join('')}…${segments.slice(end).join('')}`;
}

export function padText(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - textWidth(text)));
}
