/**
 * The encoded forms of values that were sent last, so that what many ask for is encoded once. Bounded by bytes: the forms of
 * everything that a store keeps would be as large as the store again.
 */
export class EncodedCache<Form extends { readonly length: number }> {
  readonly #mostBytes: number;
  // Two generations, so that nothing has to be taken out one by one: a full one pushes the other out.
  #young = new Map<object, Form>();
  #old = new Map<object, Form>();
  #youngBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get(key: object): Form | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** Keeps the form of a value that was not there before. */
  add(key: object, encoded: Form): void {
    this.#young.set(key, encoded);
    this.#youngBytes += encoded.length;
    if (this.#youngBytes <= this.#mostBytes / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}
