import type { RawFile } from './raw-file.ts';

/** One row of a table, straight from its page: the key and the columns, the key's own is null. */
export interface RawCell {
  readonly key: number;
  readonly columns: readonly RawValue[];
  /** The other pages that it stands on. */
  readonly overflow: readonly number[];
  /** What it takes of its own page. */
  readonly bytes: number;
}

export type RawValue = null | number | string | Buffer;

const leafOfTable = 0x0d;
const pageTypes: ReadonlySet<number> = new Set([0x02, 0x05, 0x0a, leafOfTable]);

/** Longest row that is believed, bytes: more than any row of ours has. */
const mostBytes = 1 << 30;

/** Whether a page says that it is part of a table or an index. */
export function saysItsType(bytes: Buffer, number: number): boolean {
  return pageTypes.has(bytes[number === 1 ? 100 : 0] ?? 0);
}

export function isTableLeaf(bytes: Buffer, number: number): boolean {
  return bytes[number === 1 ? 100 : 0] === leafOfTable;
}

/** The rows that a page lists, as far as they can be read; `undefined` in the place of one that cannot. */
export function* listedCells(raw: RawFile, bytes: Buffer, number: number): Generator<RawCell | undefined> {
  const start = number === 1 ? 100 : 0;
  const count = bytes.readUInt16BE(start + 3);
  for (let index = 0; index < count; index++) {
    const place = start + 8 + index * 2;
    if (place + 2 > bytes.length) return;
    yield cellAt(raw, bytes, bytes.readUInt16BE(place));
  }
}

/** Every row that a page may hold: for pages whose list is damaged. What it gives has to prove itself by a checksum. */
export function* possibleCells(raw: RawFile, bytes: Buffer): Generator<RawCell> {
  for (let place = 0; place < bytes.length - 8; place++) {
    const cell = cellAt(raw, bytes, place);
    if (cell !== undefined) yield cell;
  }
}

function cellAt(raw: RawFile, page: Buffer, place: number): RawCell | undefined {
  const size = varint(page, place);
  if (size === undefined || size.value < 2 || size.value > mostBytes) return undefined;
  const key = varint(page, size.next);
  if (key === undefined || !Number.isSafeInteger(key.value)) return undefined;
  const overflow: number[] = [];
  const payload = payloadOf(raw, page, key.next, size.value, overflow);
  const columns = payload && columnsOf(payload);
  const here = localBytes(raw.usable, size.value);
  return columns && { key: key.value, columns, overflow, bytes: key.next - place + here + (here < size.value ? 4 : 0) };
}

/** How much of a row stands on its own page. */
function localBytes(usable: number, size: number): number {
  const most = usable - 35;
  if (size <= most) return size;
  const least = Math.floor(((usable - 12) * 32) / 255) - 23;
  const wanted = least + ((size - least) % (usable - 4));
  return wanted <= most ? wanted : least;
}

/** How many bytes of rows a page of a table must have: all that is neither free nor its list. `undefined`: it does not add up. */
export function rowBytes(raw: RawFile, bytes: Buffer, number: number): number | undefined {
  const start = number === 1 ? 100 : 0;
  const content = bytes.readUInt16BE(start + 5) || 65_536;
  let free = bytes[start + 7] ?? 0;
  for (let block = bytes.readUInt16BE(start + 1), last = 0; block !== 0; ) {
    if (block <= last || block + 4 > raw.usable) return undefined;
    free += bytes.readUInt16BE(block + 2);
    last = block;
    block = bytes.readUInt16BE(block);
  }
  return raw.usable - content - free;
}

/** All of a row's bytes; the rest of a long one stands on a chain of pages of its own. */
function payloadOf(raw: RawFile, page: Buffer, start: number, size: number, overflow: number[]): Buffer | undefined {
  const { usable } = raw;
  const here = localBytes(usable, size);
  if (here === size) return start + size <= page.length ? page.subarray(start, start + size) : undefined;
  if (start + here + 4 > page.length || size > usable * (raw.pageCount + 100_000)) return undefined;
  const parts = [page.subarray(start, start + here)];
  let left = size - here;
  let next = page.readUInt32BE(start + here);
  while (left > 0) {
    const bytes = next === 0 || overflow.includes(next) ? undefined : raw.page(next);
    if (bytes === undefined || bytes.length < usable) return undefined;
    overflow.push(next);
    parts.push(bytes.subarray(4, 4 + Math.min(left, usable - 4)));
    left -= usable - 4;
    next = bytes.readUInt32BE(0);
  }
  return Buffer.concat(parts);
}

function columnsOf(payload: Buffer): readonly RawValue[] | undefined {
  const header = varint(payload, 0);
  if (header === undefined || header.value > payload.length || header.value > 100) return undefined;
  const columns: RawValue[] = [];
  let body = header.value;
  for (let at = header.next; at < header.value; ) {
    const type = varint(payload, at);
    if (type === undefined) return undefined;
    at = type.next;
    const size = sizeOfType(type.value);
    if (body + size > payload.length) return undefined;
    columns.push(valueAt(payload, type.value, body, size));
    body += size;
  }
  return columns;
}

function sizeOfType(type: number): number {
  if (type >= 12) return Math.floor((type - 12) / 2);
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0][type] as number;
}

function valueAt(payload: Buffer, type: number, start: number, size: number): RawValue {
  if (type >= 13 && type % 2 === 1) return payload.toString('utf8', start, start + size);
  if (type >= 12) return payload.subarray(start, start + size);
  if (type === 8 || type === 9) return type - 8;
  if (type === 7) return payload.readDoubleBE(start);
  if (type === 6) return Number(payload.readBigInt64BE(start));
  return size === 0 ? null : payload.readIntBE(start, size);
}

/** A number of one to nine bytes; beyond 2^53 it is only known to be large. */
function varint(bytes: Buffer, start: number): { readonly value: number; readonly next: number } | undefined {
  let value = 0;
  for (let index = 0; index < 9; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) return undefined;
    if (index === 8) return { value: value * 256 + byte, next: start + 9 };
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, next: start + index + 1 };
  }
  return undefined;
}
