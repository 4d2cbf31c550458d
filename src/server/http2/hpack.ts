import { unpackText } from './huffman.ts';

/** One header of a request. Names are lower case; values are a byte a character. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/** A field as it stands in a table. */
interface Entry extends HeaderField {
  /** What it counts as, bytes. */
  readonly size: number;
  /** Neither its name nor its value has a character that none may have. */
  readonly wellFormed: boolean;
}

/** Header bytes that cannot be unpacked. The connection cannot go on: what follows depends on them. */
export class UnpackError extends Error {}

const noBytes: Buffer = Buffer.alloc(0);
/** What a field counts beside its characters. */
const fieldBytes = 32;
/** Room for fields that the client refers to later, bytes: what HTTP/2 takes for granted. */
export const tableBytes = 4096;
/** The largest number that a header block may hold: far above what fits into one. */
const mostNumber = 1 << 24;

const nameForm = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const valueForm = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

function entry(name: string, value: string): Entry {
  return { name, value, size: name.length + value.length + fieldBytes, wellFormed: nameForm.test(name) && valueForm.test(value) };
}

/** RFC 7541, appendix A: a line for each name, its values behind it. A name without one has the empty value. */
const staticTable: readonly Entry[] = `:authority
:method GET|POST
:path /|/index.html
:scheme http|https
:status 200|204|206|304|400|404|500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`
  .split('\n')
  .flatMap((line) => {
    const [name = '', ...values] = line.split(/ (.*)/);
    return (values[0] ?? '').split('|').map((value) => entry(name, value));
  });

/** The headers of a request as they came; what is wrong with them, if anything is. */
export interface HeaderList {
  readonly fields: readonly HeaderField[];
  /** More, or larger, than was allowed; `fields` has not all of them. */
  readonly tooLarge: boolean;
  readonly wellFormed: boolean;
}

/** Unpacks the header blocks of one connection, one after the other. */
export class HeaderUnpacker {
  readonly #mostBytes: number;
  readonly #mostFields: number;
  /** What the client has put there to refer to, the newest last. */
  readonly #table: Entry[] = [];
  #tableBytes = 0;
  #room = tableBytes;
  #bytes = noBytes;
  #at = 0;
  #end = 0;

  /** What one list may hold: `mostBytes` counts 32 for each field beside its text. */
  constructor(mostBytes: number, mostFields: number) {
    this.#mostBytes = mostBytes;
    this.#mostFields = mostFields;
  }

  /** Throws UnpackError. Nothing of `bytes` is kept. */
  unpack(bytes: Buffer, start: number, end: number): HeaderList {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    const fields: Entry[] = [];
    let size = 0;
    let tooLarge = false;
    let wellFormed = true;
    let begun = false;
    while (this.#at < end) {
      const first = bytes[this.#at] as number;
      if (first >= 0x20 && first < 0x40) {
        if (begun) throw new UnpackError('the size of the table changes in the middle of a list');
        this.#resize(this.#number(5));
        continue;
      }
      begun = true;
      const field = this.#field(first);
      size += field.size;
      // What is too much is still read, for the table, but not kept.
      if (size > this.#mostBytes || fields.length === this.#mostFields) tooLarge = true;
      else fields.push(field);
      if (!field.wellFormed) wellFormed = false;
    }
    this.#bytes = noBytes;
    return { fields, tooLarge, wellFormed };
  }

  #field(first: number): Entry {
    if (first >= 0x80) return this.#entry(this.#number(7));
    const kept = first >= 0x40;
    const named = this.#number(kept ? 6 : 4);
    const name = named === 0 ? this.#text() : this.#entry(named).name;
    const field = entry(name, this.#text());
    if (kept) this.#add(field);
    return field;
  }

  #entry(index: number): Entry {
    const found = index <= staticTable.length ? staticTable[index - 1] : this.#table[this.#table.length + staticTable.length - index];
    if (found === undefined) throw new UnpackError(`there is no field ${index}`);
    return found;
  }

  #add(field: Entry): void {
    this.#tableBytes += field.size;
    this.#table.push(field);
    this.#evict();
  }

  #resize(room: number): void {
    if (room > tableBytes) throw new UnpackError(`the table may have ${tableBytes} bytes, not ${room}`);
    this.#room = room;
    this.#evict();
  }

  #evict(): void {
    while (this.#tableBytes > this.#room) this.#tableBytes -= (this.#table.shift() as Entry).size;
  }

  /** A number that begins in the lowest bits of a byte. */
  #number(bits: number): number {
    const most = (1 << bits) - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (value > mostNumber || shift > 21) throw new UnpackError('a number is too large');
      if (byte < 0x80) return value;
    }
  }

  #text(): string {
    const isPacked = (this.#bytes[this.#at] ?? 0) >= 0x80;
    const length = this.#number(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw new UnpackError('a text is longer than its block');
    this.#at = end;
    const text = isPacked ? unpackText(this.#bytes, start, end) : this.#bytes.toString('latin1', start, end);
    if (text === undefined) throw new UnpackError('a text is packed in a way that there is not');
    return text;
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new UnpackError('the block ends in the middle of a field');
    return this.#bytes[this.#at++] as number;
  }
}

/**
 * A header block that stands for itself: nothing in it is put into the table of the client, so that it may be made once for
 * all connections. Names and values are ASCII.
 */
export function packHeaders(fields: Readonly<Record<string, string>>): Buffer {
  let size = 0;
  for (const name in fields) size += 1 + packedBytes(name) + packedBytes(fields[name] as string);
  const block = Buffer.allocUnsafe(size);
  let at = 0;
  for (const name in fields) {
    const value = fields[name] as string;
    const whole = name === ':status' ? staticTable.findIndex((known) => known.name === name && known.value === value) : -1;
    if (whole >= 0) block[at++] = 0x80 | (whole + 1);
    else {
      block[at++] = 0;
      at = putText(block, value, putText(block, name, at));
    }
  }
  return block.subarray(0, at);
}

/** At most. */
function packedBytes({ length }: string): number {
  return length + (length < 0x7f ? 1 : 6);
}

function putText(into: Buffer, text: string, start: number): number {
  const { length } = text;
  let at = start;
  if (length < 0x7f) into[at++] = length;
  else {
    into[at++] = 0x7f;
    let rest = length - 0x7f;
    for (; rest > 0x7f; rest >>>= 7) into[at++] = (rest & 0x7f) | 0x80;
    into[at++] = rest;
  }
  return at + into.write(text, at, 'latin1');
}
