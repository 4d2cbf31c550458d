/**
 * The encoded forms of values that were sent last, so that what many ask for is encoded once. Bounded by bytes: the forms of
 * everything that a store keeps would be as large as the store again.
 */
export class EncodedCache {
  readonly #mostBytes: number;
  readonly #entries = new Map<object, Buffer>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get(key: object): Buffer | undefined {
    return this.#entries.get(key);
  }

  /** Keeps the form of a value that was not there before. */
  add(key: object, encoded: Buffer): void {
    this.#entries.set(key, encoded);
    this.#bytes += encoded.length;
    for (const [oldest, { length }] of this.#entries) {
      if (this.#bytes <= this.#mostBytes) break;
      this.#entries.delete(oldest);
      this.#bytes -= length;
    }
  }
}
