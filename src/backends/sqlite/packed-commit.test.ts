import { expect, test } from 'vitest';
import { packCommit, unpackWrites } from './packed-commit.ts';
import type { WriteMessage } from './protocol.ts';

test('a commit is the same on the other side', () => {
  const kind = { namespace: 'default', type: 'Things.example.dev' };
  const write: WriteMessage = { kind, id: 'a', revision: 7, uid: 7, oldVersion: null, record: '[]' };
  const writes: WriteMessage[] = [
    write,
    { ...write, revision: 8, oldVersion: 7, record: null },
    { ...write, kind: { ...kind, namespace: 'ä' }, revision: 9, uid: 9 },
    { ...write, kind: { ...kind, type: 'Others.example.dev' }, id: '', revision: 10, uid: 2 ** 40 },
    { ...write, revision: 11 },
  ];
  const packed = packCommit(3, 1000, writes);
  expect(packed.slice(0, 2)).toEqual([3, 1000]);
  expect(unpackWrites(structuredClone(packed))).toEqual(writes);
  expect(unpackWrites(packCommit(4, 1000, []))).toEqual([]);
});
