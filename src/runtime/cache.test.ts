import { beforeEach, describe, expect, test } from 'vitest';
import type { Resource } from '../resource/index.ts';
import { Cache } from './cache.ts';
import { KindFeed } from './kind-feed.ts';
import { KindView } from './kind-view.ts';

const kind = { namespace: 'default', type: 'Pies.example.dev' };
const never = new AbortController().signal;

let feed: KindFeed;
let cache: Cache;

function start(globalRevision: boolean): void {
  feed = new KindFeed(kind, new KindView());
  cache = new Cache([feed], globalRevision);
  feed.beginContents();
  arrives('a', '1');
  arrives('b', '7');
  feed.endContents();
}

/** What a store that tells no revisions delivers. */
function arrives(id: string, version: string): void {
  feed.put({ metadata: { ...kind, id, version, uid: id }, spec: {} } as unknown as Resource);
  feed.moveTo(version);
}

const isBehind = (): boolean => cache.caughtUp('baker', never) !== undefined;

beforeEach(() => start(false));

test('contents that are given anew hold what they hold now, though its version is an old one', () => {
  const anew = { metadata: { ...kind, id: 'a', version: '1', uid: 'a' }, spec: { of: 'another store' } } as unknown as Resource;
  feed.beginContents();
  feed.put(anew);
  feed.endContents();
  expect(feed.view?.list({})).toEqual([anew]);
});

describe('a controller that has written', () => {
  test('waits for its own write, whatever versions others have', () => {
    cache.wrote('baker', { ...kind, id: 'a' }, { version: '2', uid: 'a' });
    expect(isBehind()).toBe(true);
    arrives('b', '8');
    expect(isBehind()).toBe(true);
    arrives('a', '2');
    expect(isBehind()).toBe(false);
  });

  test.each([false, true])('goes on after that, though what comes next is of an older version (one revision: %s)', (globalRevision) => {
    start(globalRevision);
    cache.wrote('baker', { ...kind, id: 'b' }, { version: '9', uid: 'b' });
    arrives('b', '9');
    // The end of something tells of the version that it had.
    feed.remove('a');
    feed.moveTo('1');
    expect(isBehind()).toBe(false);
  });

  test('waits for no write to what is gone, or is another by now', () => {
    cache.wrote('baker', { ...kind, id: 'a' }, { version: '2', uid: 'a' });
    cache.wrote('baker', { ...kind, id: 'b' }, { version: '8', uid: 'earlier' });
    feed.remove('a');
    arrives('c', '8');
    expect(isBehind()).toBe(false);
  });
});
