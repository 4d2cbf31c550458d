/** Columns that text takes on a terminal: wide East Asian characters and emoji two, combining marks none. */
export function textWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += wide.test(segment) ? 2 : zero.test(segment) ? 0 : 1;
  return width;
}

const plain = /^[\x20-\x7e]*$/;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const zero = /^(?:\p{Mark}|\u200b|\u200c|\u200d|\ufe0f)+$/u;

/** Cuts text so that it takes at most `columns`, with an ellipsis where something was cut. */
export function cutText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let cut = '';
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = textWidth(segment);
    if (width + next > columns - 1) break;
    cut += segment;
    width += next;
  }
  return `${cut}…`;
}

export function padText(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - textWidth(text)));
}
