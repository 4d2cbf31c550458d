const table = new Int32Array(256);
for (let byte = 0; byte < 256; byte++) {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  table[byte] = value;
}

/** CRC-32 (IEEE 802.3) of bytes. */
export function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (let index = 0; index < bytes.length; index++) crc = (table[(crc ^ (bytes[index] as number)) & 0xff] as number) ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}

/** Text as bytes with its checksum in front; the key of the row goes into the checksum, so that swapped rows are seen. */
export function seal(key: string, text: string): Uint8Array {
  const keyLength = Buffer.byteLength(key);
  const sealed = Buffer.allocUnsafe(4 + Buffer.byteLength(text));
  sealed.write(text, 4);
  const covered = Buffer.allocUnsafe(keyLength + sealed.length - 4);
  covered.write(key, 0);
  sealed.copy(covered, keyLength, 4);
  sealed.writeUInt32BE(crc32(covered), 0);
  return sealed;
}

/** The text again; `undefined` when it was damaged or belongs to another key. */
export function unseal(key: string, sealed: Uint8Array): string | undefined {
  if (sealed.length < 4) return undefined;
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (crc32(Buffer.concat([Buffer.from(key), bytes.subarray(4)])) !== bytes.readUInt32BE(0)) return undefined;
  return bytes.toString('utf8', 4);
}
