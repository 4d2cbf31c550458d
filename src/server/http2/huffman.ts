/**
 * How many bits the code of each byte has, and last that of the end mark: a digit of base 36 each (RFC 7541, appendix B).
 * The codes themselves follow from it: they count upwards, from short to long and from low bytes to high.
 */
const bitsOfCodes =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq' +
  'u';
const endMark = 256;
const mostBits = 30;

/** Bytes in the order of their codes; for each length, the first code, how many there are, and where their bytes begin. */
const byCode: number[] = [];
const firstCode = new Int32Array(mostBits + 1);
const codes = new Int32Array(mostBits + 1);
const begins = new Int32Array(mostBits + 1);
for (let bits = 1, code = 0; bits <= mostBits; bits++, code *= 2) {
  firstCode[bits] = code;
  begins[bits] = byCode.length;
  for (let byte = 0; byte <= endMark; byte++) if (Number.parseInt(bitsOfCodes[byte] as string, 36) === bits) byCode.push(byte);
  codes[bits] = byCode.length - (begins[bits] as number);
  code += codes[bits] as number;
}

/** Text that was packed by Huffman's code, a byte a character; `undefined` for bits that are none. */
export function unpackText(bytes: Uint8Array, start: number, end: number): string | undefined {
  const unpacked = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5));
  let size = 0;
  let code = 0;
  let bits = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1);
      // Above the longest code there is nothing to find.
      if (++bits > mostBits) return undefined;
      const nth = code - (firstCode[bits] as number);
      if (nth < 0 || nth >= (codes[bits] as number)) continue;
      const found = byCode[(begins[bits] as number) + nth] as number;
      if (found === endMark) return undefined;
      unpacked[size++] = found;
      code = 0;
      bits = 0;
    }
  }
  // The last byte is filled up with ones, which is less than a byte.
  return bits < 8 && code === (1 << bits) - 1 ? unpacked.toString('latin1', 0, size) : undefined;
}
