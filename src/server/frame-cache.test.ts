import { expect, test } from 'vitest';
import { FrameCache, itemsFrame } from './frame-cache.ts';
import { MessageReader } from './grpc/framing.ts';

const items = [new Uint8Array(3).fill(7), new Uint8Array(300).fill(8), new Uint8Array(0)];

/** The messages in a piece of a stream. */
function messages(bytes: Buffer): readonly Buffer[] {
  const reader = new MessageReader(1_000_000);
  reader.push(bytes);
  const found: Buffer[] = [];
  for (let next = reader.next(); next !== undefined; next = reader.next()) if ('bytes' in next) found.push(next.bytes);
  expect(reader.pending).toBe(0);
  return found;
}

test('items go together into one message, or each into its own', () => {
  const frames = new FrameCache();
  const alone = items.map((item) => messages(itemsFrame([item]))[0]);
  expect(messages(frames.get(items, 'together'))).toEqual([Buffer.concat(alone as Buffer[])]);
  expect(messages(frames.get(items, 'apart'))).toEqual(alone);
});

test('the same items in the same framing are one buffer', () => {
  const frames = new FrameCache();
  const apart = frames.get(items, 'apart');
  expect(frames.get([...items], 'apart')).toBe(apart);
  expect(frames.get(items.slice(0, 2), 'apart')).not.toBe(apart);
});
