import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

/** An environment whose turns are taken by hand. */
function byHand() {
  const breaths: (() => void)[] = [];
  return {
    breathe: () => new Promise<void>((resolve) => breaths.push(resolve)),
    async turn() {
      breaths.shift()?.();
      await Promise.resolve();
    },
    get waiting() {
      return breaths.length;
    },
  };
}

test('all that was asked for in a turn is called back in the next one', async () => {
  const hand = byHand();
  const turns = new Turns(hand);
  const called: string[] = [];
  turns.next(() => {
    called.push('first');
    turns.next(() => called.push('later'));
  });
  turns.next(() => called.push('second'));
  expect(hand.waiting).toBe(1);
  await hand.turn();
  expect(called).toEqual(['first', 'second']);
  await hand.turn();
  expect(called).toEqual(['first', 'second', 'later']);
  expect(hand.waiting).toBe(0);
});

test('more than fit into a turn are called back in turns of their own, in order', async () => {
  const hand = byHand();
  const turns = new Turns(hand);
  const called: number[] = [];
  for (let index = 0; index < 1_500; index++) turns.next(() => called.push(index));
  await hand.turn();
  expect(called).toHaveLength(1_024);
  await hand.turn();
  expect(called).toEqual(Array.from({ length: 1_500 }, (_, index) => index));
  expect(hand.waiting).toBe(0);
});
