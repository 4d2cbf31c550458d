import { BinaryWriter } from '@bufbuild/protobuf/wire';

/** A message whose one field, number 1, is an encoded resource: what Get, List, Create and Update answer. */
export function answerOf(resource: Uint8Array): Buffer {
  const bytes = new BinaryWriter().tag(1, 2).bytes(resource).finish();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
