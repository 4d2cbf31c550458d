import { Bytes } from '../../resource/index.ts';
import type { Bookmark } from '../../state/index.ts';
import { invalidBookmark } from '../../state/index.ts';

const format = 1;

/** Makes and reads the bookmarks of one store: format byte, store id (16 bytes), revision (8 bytes, big endian). */
export class Bookmarks {
  readonly #template: Buffer;
  /** The last one made: all events of a coalesced stretch carry the same. */
  #last: { readonly revision: number; readonly bookmark: Bookmark } | undefined;

  /** `storeId`: 32 hexadecimal digits. */
  constructor(storeId: string) {
    const id = Buffer.from(storeId, 'hex');
    if (id.length !== 16) throw new TypeError(`a store id has 32 hexadecimal digits, found ${JSON.stringify(storeId)}`);
    this.#template = Buffer.concat([Buffer.from([format]), id, Buffer.alloc(8)]);
  }

  at(revision: number): Bookmark {
    if (this.#last?.revision === revision) return this.#last.bookmark;
    const bytes = Buffer.from(this.#template);
    bytes.writeBigUInt64BE(BigInt(revision), 17);
    this.#last = { revision, bookmark: Bytes.from(bytes) };
    return this.#last.bookmark;
  }

  /** The revision of a bookmark of this store. Throws InvalidBookmark for any other. */
  read(bookmark: Bookmark): number {
    if (!Bytes.is(bookmark)) throw invalidBookmark('a bookmark is bytes, as an event carried them');
    const bytes = Buffer.from(bookmark.toUint8Array());
    if (bytes.length !== this.#template.length || bytes[0] !== format) throw invalidBookmark('not a bookmark of this kind of store');
    if (bytes.compare(this.#template, 0, 17, 0, 17) !== 0) throw invalidBookmark('the bookmark was made by another store');
    return Number(bytes.readBigUInt64BE(17));
  }
}
