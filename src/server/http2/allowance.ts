/** So much of something at once, and so much of it a second from then on. */
export class Allowance {
  readonly #most: number;
  readonly #perSecond: number;
  #left: number;
  #since: number;

  constructor(most: number, perSecond: number, now: number) {
    this.#most = this.#left = most;
    this.#perSecond = perSecond;
    this.#since = now;
  }

  /** Uses one; false when there is none left. `now` in milliseconds. */
  use(now: number): boolean {
    this.#left = Math.min(this.#most, this.#left + ((now - this.#since) / 1000) * this.#perSecond);
    this.#since = now;
    this.#left -= 1;
    return this.#left >= 0;
  }
}
