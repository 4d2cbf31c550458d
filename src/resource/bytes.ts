const bytesMark: unique symbol = Symbol.for('steadystate.Bytes') as never;

/** Immutable bytes: they are copied in and copied out, so that a shared value cannot be changed through them. */
export class Bytes {
  readonly #bytes: Uint8Array;

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    Object.freeze(this);
  }

  /** Copies `source`. */
  static from(source: Uint8Array): Bytes {
    return new Bytes(Uint8Array.from(source));
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** A fresh copy. */
  toUint8Array(): Uint8Array {
    return this.#bytes.slice();
  }

  equals(other: Bytes): boolean {
    if (this.#bytes.length !== other.#bytes.length) return false;
    for (let index = 0; index < this.#bytes.length; index++) {
      if (this.#bytes[index] !== other.#bytes[index]) return false;
    }
    return true;
  }

  toBase64(): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength).toString('base64');
  }

  toJSON(): string {
    return this.toBase64();
  }

  /** Whether a value is bytes, also those of another copy of this package. */
  static is(value: unknown): value is Bytes {
    return value instanceof Bytes || (typeof value === 'object' && value !== null && bytesMark in value);
  }

  get [bytesMark](): true {
    return true;
  }
}
