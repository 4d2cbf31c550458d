import { EventEmitter } from 'node:events';
import type { ClientReadableStream, ServiceError } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import type { Resource } from '../../resource/index.ts';
import { Bytes, makeResource } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import { unavailable } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import type { WatchResponse } from '../../wire/index.ts';
import { RemoteSource } from './remote-source.ts';

const at = (revision: number): Bytes => Bytes.from(Uint8Array.of(revision));
const thing = (id: string, version: number, uid = version): Resource =>
  makeResource({ metadata: { namespace: 'default', type: 'Things.example.dev', id, version: `${version}`, uid: `${uid}` }, spec: version });

/** A step of a coalesced stretch; `place`: where to go on from. */
const coalesced = (event: object, revision: number, place: number): StateEvent =>
  ({ ...event, revision, bookmark: at(place), resync: true }) as StateEvent;
const step = (event: object, revision: number): StateEvent => ({ ...event, revision, bookmark: at(revision) }) as StateEvent;
const created = (resource: Resource) => ({ type: 'created', resource });
const updated = (old: Resource, resource: Resource) => ({ type: 'updated', resource, old });
const destroyed = (resource: Resource) => ({ type: 'destroyed', resource });
const caughtUp = (place: number): StateEvent => ({ type: 'noop', bookmark: at(place) });

const text = (event: StateEvent): string => {
  const place = event.bookmark === undefined ? '' : ` from ${event.bookmark.toUint8Array()[0]}`;
  if (event.type === 'errored' || event.type === 'noop' || event.type === 'bootstrapped' || event.type === 'kindErrored')
    return `${event.type}${place}`;
  const { id, version } = event.resource.metadata;
  return `${event.type} ${event.type === 'updated' ? `${id}${event.old?.metadata.version}→` : id}${version}${place}`;
};

/** A source whose streams are played by the test. */
async function play(tellsCaughtUp = true) {
  const environment = manualEnvironment();
  const opened: { stream: EventEmitter; from: number | undefined }[] = [];
  const source = new RemoteSource({
    environment,
    open: (bookmark) => {
      const stream = Object.assign(new EventEmitter(), { cancel() {}, pause() {}, resume() {} });
      opened.push({ stream, from: bookmark?.toUint8Array()[0] });
      return stream as unknown as ClientReadableStream<WatchResponse>;
    },
    decode: (response) => response as unknown as readonly StateEvent[],
    readError: (error: ServiceError) => unavailable('cut', error),
    hideFirstNoop: false,
    awaitBookmark: false,
    from: at(1),
    repeatable: false,
    tellsCaughtUp,
    onEnd() {},
  });
  const started = source.start(undefined);
  const give = (...events: readonly StateEvent[]): void => void opened.at(-1)?.stream.emit('data', events);
  give();
  await started;
  return {
    give,
    read: (): readonly string[] => source.take(1_000).map(text),
    async cut(): Promise<number | undefined> {
      opened.at(-1)?.stream.emit('error', new Error('cut'));
      await environment.advance(10_000);
      return opened.at(-1)?.from;
    },
    end(): void {
      source.close();
      expect(environment.open.counts()).toEqual({});
    },
  };
}

test('a line that breaks within a coalesced stretch: the reader is told one step from what it knows, and nothing twice', async () => {
  const [a1, b1, c1] = [thing('a', 1), thing('b', 1), thing('c', 1)];
  const line = await play();
  // Told: a moved on, d came, b went. Not told any more: c moved on, e came.
  line.give(
    coalesced(updated(a1, thing('a', 5, 1)), 5, 1),
    coalesced(created(thing('d', 6)), 6, 1),
    coalesced(destroyed(b1), 7, 1),
    coalesced(created(thing('x', 8)), 8, 1),
  );
  expect(line.read()).toEqual(['updated a1→5 from 1', 'created d6 from 1', 'destroyed b1 from 1', 'created x8 from 1']);
  expect(await line.cut()).toBe(1);
  // Everything comes once more, step by step; meanwhile a, d and b went on, and x is the same.
  line.give(
    step(updated(a1, thing('a', 2, 1)), 2),
    step(updated(c1, thing('c', 3, 1)), 3),
    step(updated(thing('a', 2, 1), thing('a', 5, 1)), 5),
    step(created(thing('d', 6)), 6),
    step(destroyed(b1), 7),
    step(created(thing('x', 8)), 8),
  );
  expect(line.read()).toEqual([]);
  line.give(
    step(updated(thing('c', 3, 1), thing('c', 9, 1)), 9),
    step(created(thing('e', 10)), 10),
    step(updated(thing('a', 5, 1), thing('a', 11, 1)), 11),
    step(destroyed(thing('d', 6)), 12),
    step(created(thing('b', 13)), 13),
    caughtUp(13),
  );
  expect(line.read()).toEqual([
    'updated c1→9 from 1',
    'created e10 from 1',
    'updated a5→11 from 1',
    'destroyed d6 from 1',
    'created b13 from 1',
    'noop from 13',
  ]);
  line.give(step(destroyed(thing('e', 10)), 14));
  expect(line.read()).toEqual(['destroyed e10 from 14']);
  expect(await line.cut()).toBe(14);
  line.give(step(created(thing('e', 15)), 15), caughtUp(15));
  expect(line.read()).toEqual(['created e15 from 15', 'noop from 15']);
  line.end();
});

test('what came and went again meanwhile is told to have gone, another incarnation as both, and a second cut changes nothing', async () => {
  const a1 = thing('a', 1);
  const line = await play();
  line.give(coalesced(created(thing('d', 6)), 6, 1), coalesced(updated(a1, thing('a', 7, 1)), 7, 1));
  expect(line.read()).toHaveLength(2);
  expect(await line.cut()).toBe(1);
  line.give(step(created(thing('d', 6)), 6));
  expect(await line.cut()).toBe(1);
  // Coalesced once more: of d there is nothing to tell any more.
  line.give(coalesced(destroyed(a1), 12, 1), coalesced(created(thing('a', 12)), 12, 12), caughtUp(12));
  expect(line.read()).toEqual(['destroyed a7 from 1', 'created a12 from 1', 'destroyed d6 from 1', 'noop from 12']);
  line.end();
});

test('where nobody tells that all was told again, the first place behind what was told does', async () => {
  const a1 = thing('a', 1);
  const line = await play(false);
  line.give(coalesced(destroyed(a1), 7, 1));
  expect(line.read()).toEqual(['destroyed a1 from 1']);
  expect(await line.cut()).toBe(1);
  line.give(step(destroyed(a1), 3), step(created(thing('a', 7)), 7));
  expect(line.read()).toEqual(['created a7 from 7']);
  line.end();
});

test('an error while it is mended is told at once', async () => {
  const line = await play();
  line.give(coalesced(created(thing('d', 6)), 6, 1));
  expect(line.read()).toHaveLength(1);
  await line.cut();
  line.give({ type: 'errored', error: unavailable('no more') });
  expect(line.read()).toEqual(['errored']);
  line.end();
});
