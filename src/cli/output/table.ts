import { visibleText } from '../../resource/index.ts';
import { cutMiddle, cutText, padText, textWidth } from './text-width.ts';

const gap = '   ';
/** Below this, or its heading, no column is cut to make room for others. */
const narrowest = 8;
/** What the last column, which is free text, keeps before others are cut. */
const lastKeeps = 20;

/**
 * Rows under headings, three spaces apart. On a terminal every column keeps its place: what does not fit is cut, the last
 * column at its end, others in their middle, the widest first.
 */
export class Table {
  readonly #headings: readonly string[];
  #widths: number[];

  constructor(headings: readonly string[]) {
    this.#headings = headings.map(visibleText);
    this.#widths = this.#headings.map(textWidth);
  }

  /** All rows with their headings. `columns` 0: nothing is cut. */
  render(rows: readonly (readonly string[])[], options: { readonly columns: number; readonly headings?: boolean }): string {
    const cells = rows.map((row) => row.map(visibleText));
    for (const row of cells) row.forEach((cell, index) => (this.#widths[index] = Math.max(this.#widths[index] ?? 0, textWidth(cell))));
    const lines = options.headings === false ? cells : [this.#headings, ...cells];
    const widths = options.columns > 0 ? fitting(this.#widths, this.#headings.map(textWidth), options.columns) : this.#widths;
    return lines.map((row) => `${line(row, widths, options.columns)}\n`).join('');
  }
}

function line(row: readonly string[], widths: readonly number[], columns: number): string {
  const last = row.length - 1;
  const text = row
    .map((cell, index) => (index === last ? cell : padText(cutMiddle(cell, widths[index] ?? 0), widths[index] ?? 0)))
    .join(gap)
    .trimEnd();
  return columns > 0 ? cutText(text, columns) : text;
}

/** Widths of all columns but the last so that a line fits, as far as that is possible. */
function fitting(natural: readonly number[], headings: readonly number[], columns: number): readonly number[] {
  const others = natural.slice(0, -1);
  const room = columns - others.length * gap.length - Math.min(natural.at(-1) ?? 0, lastKeeps);
  const capped = (cap: number): readonly number[] => others.map((width, index) => Math.min(width, Math.max(cap, headings[index] ?? 0)));
  let cap = Math.max(narrowest, ...others);
  while (cap > narrowest && capped(cap).reduce((sum, width) => sum + width, 0) > room) cap--;
  return capped(cap);
}
