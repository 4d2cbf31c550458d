const bytesMark: unique symbol = Symbol.for('steadystate.Bytes') as never;

/** Immutable bytes: they are copied in and copied out, so that a shared value cannot be changed through them. */
export class Bytes {
  readonly #bytes: Uint8Array;
  readonly [bytesMark] = true;

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    Object.freeze(this);
  }

  /** Copies `source`. */
  static from(source: Uint8Array): Bytes {
    return new Bytes(Uint8Array.from(source));
  }

  /** Whether a value is bytes, also those of another copy of this package. */
  static is(value: unknown): value is Bytes {
    return typeof value === 'object' && value !== null && bytesMark in value;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** A fresh copy. */
  toUint8Array(): Uint8Array {
    return this.#bytes.slice();
  }

  equals(other: Bytes): boolean {
    return Buffer.compare(this.#bytes, Bytes.from(other.toUint8Array()).#bytes) === 0;
  }

  toBase64(): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength).toString('base64');
  }

  /** Text for people and for JSON output; it does not come back as bytes. */
  toJSON(): string {
    return this.toBase64();
  }
}
