import { describe, expect, test } from 'vitest';
import type { Kind, Resource } from '../../resource/index.ts';
import { Bytes, makeResource, SteadystateError } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';
import { MergedSource, openEachKind } from './merged-source.ts';

const kindOf = (type: string): Kind => ({ namespace: 'default', type });
const [a, b] = [kindOf('As.example.dev'), kindOf('Bs.example.dev')];
const bookmark = Bytes.from(Uint8Array.of(1));
const created = (kind: Kind, id: string): StateEvent => ({
  type: 'created',
  resource: makeResource({ metadata: { ...kind, id }, spec: {} }) as Resource,
  revision: 1,
  bookmark,
});

/** A source that is fed by hand. */
class Fed implements EventSource {
  #events: StateEvent[] = [];
  #callbacks: (() => void)[] = [];
  ended = false;
  closed = false;
  feed(...events: StateEvent[]): void {
    this.#events.push(...events);
    for (const wake of this.#callbacks.splice(0)) wake();
  }
  take(max: number): readonly StateEvent[] {
    return this.#events.splice(0, max);
  }
  whenReady(callback: () => void): void {
    if (this.ended || this.#events.length > 0) callback();
    else this.#callbacks.push(callback);
  }
  close(): void {
    this.closed = this.ended = true;
  }
}

const told = (events: readonly StateEvent[]) =>
  events.map((event) => ('resource' in event ? `${event.type} ${event.resource.metadata.id}` : event.type));

describe('several kinds from one watch each', () => {
  test('contents come kind by kind, then bootstrapped once, then changes, without places that are of one kind only', () => {
    const [first, second] = [new Fed(), new Fed()];
    const merged = new MergedSource(
      [
        { kind: a, source: first },
        { kind: b, source: second },
      ],
      true,
    );
    second.feed(created(b, 'b1'), { type: 'bootstrapped', revision: 1, bookmark }, created(b, 'b2'));
    expect(merged.take(10)).toEqual([]);
    let woken = 0;
    merged.whenReady(() => woken++);
    first.feed(created(a, 'a1'));
    expect(woken).toBe(1);
    expect(told(merged.take(10))).toEqual(['created a1']);
    first.feed({ type: 'bootstrapped', revision: 2, bookmark }, { type: 'noop', revision: 2, bookmark }, created(a, 'a2'));
    const rest = merged.take(10);
    expect(told(rest)).toEqual(['created b1', 'bootstrapped', 'created a2', 'created b2']);
    for (const event of rest) expect([event.bookmark, event.revision]).toEqual([undefined, undefined]);
  });

  test('a kind that is denied is told and left out, a lost connection ends all', () => {
    const [first, second] = [new Fed(), new Fed()];
    const denied = new SteadystateError('Forbidden', 'no');
    const merged = new MergedSource(
      [
        { kind: a, source: denied },
        { kind: b, source: first },
        { kind: kindOf('Cs.example.dev'), source: second },
      ],
      true,
    );
    expect(merged.take(10)).toEqual([{ type: 'kindErrored', kind: a, error: denied }]);
    second.feed({ type: 'bootstrapped' });
    first.feed({ type: 'errored', error: denied });
    expect(told(merged.take(10))).toEqual(['kindErrored', 'bootstrapped']);
    expect(first.closed).toBe(true);
    second.feed({ type: 'errored', error: new SteadystateError('Unavailable', 'gone') });
    expect(told(merged.take(10))).toEqual(['errored']);
    expect([merged.ended, second.closed]).toEqual([true, true]);
  });

  test('all kinds denied: it is told, contents are over, and it ends', () => {
    const merged = new MergedSource([{ kind: a, source: new SteadystateError('Unsupported', 'no') }], true);
    expect(told(merged.take(10))).toEqual(['kindErrored', 'bootstrapped']);
    expect(merged.ended).toBe(true);
  });

  test('one that cannot be reached fails the start, and leaves none open', async () => {
    const open = new Fed();
    const lost = new SteadystateError('Unavailable', 'nobody there');
    await expect(openEachKind([a, b], false, async (kind) => (kind === a ? open : Promise.reject(lost)))).rejects.toBe(lost);
    expect(open.closed).toBe(true);
  });

  test('a close wakes who waits, and closes all', () => {
    const source = new Fed();
    const merged = new MergedSource([{ kind: a, source }], false);
    let woken = 0;
    merged.whenReady(() => woken++);
    merged.close();
    expect([woken, source.closed, merged.ended]).toEqual([1, true, true]);
  });
});
