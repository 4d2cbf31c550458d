/** What comes before the id and the record of a row: kind, length of the id, length of the record, uid, version. */
const headerBytes = 28;

/** One stored resource; id and record are UTF-8. */
export interface PackedRow {
  readonly kind: number;
  readonly uid: number;
  readonly version: number;
  readonly id: Uint8Array;
  readonly record: Uint8Array;
}

/**
 * Collects rows into one buffer, which changes threads without a copy. On the other side the records stay in it,
 * encoded, until somebody asks for one.
 */
export class RowPacker {
  #buffer: Buffer;
  #end = 0;

  constructor(size: number) {
    this.#buffer = Buffer.from(new ArrayBuffer(size));
  }

  get empty(): boolean {
    return this.#end === 0;
  }

  /** `false` when the row does not fit any more. A row that is larger than the whole buffer makes it larger. */
  add(row: PackedRow): boolean {
    const size = headerBytes + row.id.length + row.record.length;
    if (this.#end + size > this.#buffer.length) {
      if (this.#end > 0) return false;
      this.#buffer = Buffer.from(new ArrayBuffer(size));
    }
    const buffer = this.#buffer;
    let at = this.#end;
    buffer.writeUInt32LE(row.kind, at);
    buffer.writeUInt32LE(row.id.length, at + 4);
    buffer.writeUInt32LE(row.record.length, at + 8);
    buffer.writeDoubleLE(row.uid, at + 12);
    buffer.writeDoubleLE(row.version, at + 20);
    at += headerBytes;
    buffer.set(row.id, at);
    buffer.set(row.record, at + row.id.length);
    this.#end = at + row.id.length + row.record.length;
    return true;
  }

  /** The rows; the packer must not be used any more. */
  finish(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer.buffer as ArrayBuffer, 0, this.#end);
  }
}

export interface UnpackedRow {
  readonly kind: number;
  readonly uid: number;
  readonly version: number;
  readonly id: string;
  /** Place of the record in the buffer. */
  readonly start: number;
  readonly end: number;
}

/** Calls back for each row of a buffer. */
export function unpackRows(buffer: Buffer, give: (row: UnpackedRow) => void): void {
  for (let at = 0; at < buffer.length; ) {
    const idEnd = at + headerBytes + buffer.readUInt32LE(at + 4);
    const end = idEnd + buffer.readUInt32LE(at + 8);
    give({
      kind: buffer.readUInt32LE(at),
      uid: buffer.readDoubleLE(at + 12),
      version: buffer.readDoubleLE(at + 20),
      id: buffer.toString('utf8', at + headerBytes, idEnd),
      start: idEnd,
      end,
    });
    at = end;
  }
}
