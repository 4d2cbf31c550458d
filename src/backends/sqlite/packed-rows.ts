import { crc32 } from 'node:zlib';

/**
 * One row of the resources as text: kind, checksum, bytes of the id and of the record, and then the part that the checksum covers:
 * uid, version, id, record. SQLite puts many of them together, so that the thread that reads them makes no value of each.
 */
const packedRow =
  "kind || ' ' || crc || ' ' || octet_length(id) || ' ' || octet_length(record) || ' ' || uid || '/' || version || '/' || id || record";

/** Rows after a uid, so many: the uid of the last, how many, and all of them in one value. */
export const packedRowsAfter = `SELECT max(uid), count(*), CAST(group_concat(packed, '') AS BLOB) FROM (SELECT uid, ${packedRow} AS packed FROM resources WHERE uid > ? ORDER BY uid LIMIT ?)`;

/** Walks over packed rows. The records stay where they are, encoded, until somebody asks for one. */
export class PackedRows {
  readonly buffer: Buffer;
  kind = 0;
  crc = 0;
  uid = 0;
  version = 0;
  /** Places in the buffer: of the part that the checksum covers, of the id, of the record, and where that ends. */
  start = 0;
  idStart = 0;
  recordStart = 0;
  end = 0;

  constructor(bytes: Uint8Array) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Goes to the next row; `false`: there is none. Throws where the bytes are no rows. */
  next(): boolean {
    if (this.end === this.buffer.length) return false;
    this.kind = this.#number();
    this.crc = this.#number();
    const idBytes = this.#number();
    const recordBytes = this.#number();
    this.start = this.end;
    this.uid = this.#number();
    this.version = this.#number();
    this.idStart = this.end;
    this.recordStart = this.idStart + idBytes;
    this.end = this.recordStart + recordBytes;
    if (!(this.end <= this.buffer.length)) throw new RangeError(`a row is cut off at byte ${this.start}`);
    return true;
  }

  /** The checksum that this row should have, for the seed of its kind. */
  checksum(seed: number): number {
    return crc32(this.buffer.subarray(this.start, this.end), seed);
  }

  get id(): string {
    return this.buffer.toString('utf8', this.idStart, this.recordStart);
  }

  get record(): string {
    return this.buffer.toString('utf8', this.recordStart, this.end);
  }

  /** Digits up to a separator. */
  #number(): number {
    const { buffer } = this;
    let value = 0;
    let place = this.end;
    for (let digit = (buffer[place] ?? Number.NaN) - 48; digit >= 0 && digit <= 9; digit = (buffer[place] ?? Number.NaN) - 48) {
      value = value * 10 + digit;
      place++;
    }
    // One digit at least, then a space or a slash.
    if (place === this.end || (buffer[place] !== 0x20 && buffer[place] !== 0x2f)) throw new RangeError(`no number at byte ${this.end}`);
    this.end = place + 1;
    return value;
  }
}
