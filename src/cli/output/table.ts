import { visibleText } from '../../resource/index.ts';
import { cutText, padText, textWidth } from './text-width.ts';

/** Rows under headings, three spaces apart. On a terminal the last column is cut so that a row stays on its line. */
export class Table {
  readonly #headings: readonly string[];
  #widths: number[];

  constructor(headings: readonly string[]) {
    this.#headings = headings;
    this.#widths = headings.map(textWidth);
  }

  /** All rows with their headings. */
  render(rows: readonly (readonly string[])[], options: { readonly columns: number; readonly headings?: boolean }): string {
    const cells = rows.map((row) => row.map((cell) => visibleText(cell)));
    for (const row of cells) row.forEach((cell, index) => (this.#widths[index] = Math.max(this.#widths[index] ?? 0, textWidth(cell))));
    const lines = options.headings === false ? cells : [this.#headings, ...cells];
    return lines.map((row) => `${this.#line(row, options.columns)}\n`).join('');
  }

  #line(row: readonly string[], columns: number): string {
    const line = row
      .map((cell, index) => (index === row.length - 1 ? cell : padText(cell, this.#widths[index] ?? 0)))
      .join('   ')
      .trimEnd();
    return columns > 20 ? cutText(line, columns) : line;
  }
}
