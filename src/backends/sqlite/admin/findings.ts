import type { StoreFinding } from '../../../state/index.ts';
import { asFailure } from '../failures.ts';

/** So many are listed. */
const most = 10_000;

/** What a look found. */
export class Findings {
  readonly #file: string;
  readonly list: StoreFinding[] = [];
  more = 0;

  constructor(file: string) {
    this.#file = file;
  }

  add(place: string, message: string): void {
    if (this.list.length < most) this.list.push({ place, message });
    else this.more++;
  }

  /** Runs a part of the look; damage that stops it is a finding, anything else is thrown. */
  try<Value>(place: string, work: () => Value): Value | undefined {
    try {
      return work();
    } catch (error) {
      this.failed(place, error);
      return undefined;
    }
  }

  failed(place: string, error: unknown): void {
    const failed = asFailure(this.#file, error);
    if (failed.failure.code !== 'Corrupt') throw failed;
    this.add(place, failed.what);
  }
}
