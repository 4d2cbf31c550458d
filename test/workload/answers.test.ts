import { expect, test } from 'vitest';
import type { Desired } from '../../src/workload/index.ts';
import {
  createRegistry,
  defineWorkload,
  registerDefaultPhases,
  registerReadiness,
  withCustomRequeueResult,
} from '../../src/workload/index.ts';
import type { AppOptions } from './embedded-world.ts';
import { apps, boxes, otherBoxes, World } from './embedded-world.ts';

const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};
const isTime = 'expected a finite number of milliseconds from 0';

const expected = 'expected true, false, or { proceed, reason, message }';
const wrong: readonly (readonly [string, unknown, string])[] = [
  ['nothing', undefined, `answered undefined; ${expected}`],
  ['null', null, `answered null; ${expected}`],
  ['a number', 1, `answered 1; ${expected}`],
  ['no decision', {}, `answered an object without proceed; ${expected}`],
  ['a decision in words', { proceed: 'yes' }, `answered an object without proceed; ${expected}`],
  ['readiness in words', { proceed: true, ready: 'no' }, 'answered ready: no; expected true or false'],
  ['no time', { proceed: false, requeueAfterMs: Number.NaN }, `answered requeueAfterMs: NaN; ${isTime}`],
  ['endless time', { proceed: false, requeueAfterMs: Infinity }, `answered requeueAfterMs: Infinity; ${isTime}`],
  ['time gone by', { proceed: false, requeueAfterMs: -1 }, `answered requeueAfterMs: -1; ${isTime}`],
  ['time in words', { proceed: false, requeueAfterMs: '5' }, `answered requeueAfterMs: 5; ${isTime}`],
];

test.each(wrong)('a phase that answers %s is Stalled, and its condition says so', async (_what, answer, message) => {
  const phases = createRegistry().register('Odd', (async () => answer) as never, 'create');
  await using world = new World({ phases });
  await world.start();
  await world.app([]);
  expect(await world.condition('Odd')).toBe(`False Failed the phase Odd ${message}`);
  expect(await world.condition('Stalled')).toBe(`True InvalidAnswer the phase Odd ${message}`);
});

const odd: readonly (readonly [string, unknown, string])[] = [
  ['nothing', undefined, 'undefined was thrown instead of an error'],
  ['text', 'in words', 'in words'],
  ['what has no text', Object.create(null), 'something without a text was thrown instead of an error'],
  ['a message that is none', Object.assign(new Error('x'), { message: 5 }), '5'],
];

test.each(odd)('a phase that throws %s has failed, its condition says so, and it is tried again', async (_what, thrown, message) => {
  let odd = throwing(thrown) as () => boolean;
  const phases = createRegistry().register('Odd', async () => odd(), 'create');
  await using world = new World({ phases });
  await world.start();
  await world.app([]);
  expect(await world.condition('Odd')).toBe(`False Failed ${message}`);
  expect(await world.condition('Ready')).toBe(`False Failed ${message}`);
  odd = () => true;
  await world.environment.advance(60_000);
  expect(await world.condition('Ready')).toBe('True Ready');
});

test.each([
  ['getResources', { getResources: throwing(Object.create(null)) as never }],
  ['mutate', { mutate: throwing(Object.create(null)) as never }],
  ['checkReady', { checkReady: throwing(Object.create(null)) as never, children: [otherBoxes] }],
] satisfies [string, AppOptions][])('%s may throw what has no text', async (what, options) => {
  await using world = new World(options);
  await world.start();
  await world.app([{ kind: 'otherBoxes', id: 'a' }]);
  const phase = what === 'checkReady' ? 'Check-Ready' : 'Create-Resources';
  expect(await world.condition(phase)).toBe('False Failed something without a text was thrown instead of an error');
});

test.each([
  [undefined, 'checkReady answered undefined; expected true, false, or { ready, reason, message }'],
  [{ ready: 'soon' }, 'checkReady answered an object without ready; expected true, false, or { ready, reason, message }'],
])('checkReady: %o is no answer', async (answer, message) => {
  await using world = new World({ checkReady: () => answer as never });
  await world.start();
  await world.app([{ kind: 'otherBoxes', id: 'a' }]);
  expect(await world.condition('Check-Ready')).toBe(`False Failed ${message}`);
});

test.each([
  [true, 'the rule of readiness answered true; expected { status, reason, message }, or undefined'],
  [{ status: 'Ready' }, 'the rule of readiness answered status: Ready; expected one of Current, InProgress, Failed, Terminating, NotFound'],
  [{ status: 'Current', message: 5 }, 'the rule of readiness answered message: 5; expected text'],
  [
    { status: 'InProgress', recheckAfterMs: Number.NaN },
    'the rule of readiness answered recheckAfterMs: NaN; expected a finite number of milliseconds above 0',
  ],
  [
    { status: 'InProgress', recheckAfterMs: 0 },
    'the rule of readiness answered recheckAfterMs: 0; expected a finite number of milliseconds above 0',
  ],
])('a rule of readiness: %o is no answer, and fails that child', async (answer, message) => {
  const phases = registerDefaultPhases(createRegistry());
  registerReadiness(phases, { kind: 'Boxes', group: 'other.dev' }, () => answer as never);
  await using world = new World({ phases });
  await world.start();
  await world.app([{ kind: 'otherBoxes', id: 'a' }]);
  expect(await world.condition('Ready')).toBe(`False ChildFailed other/a: RuleFailed (${message})`);
  const writes = world.takeWrites().length;
  await world.environment.advance(60_000);
  expect([writes > 0, world.takeWrites()]).toEqual([true, []]);
});

test('a rule of readiness may leave out what there is not to say; a steady workload is not written then either', async () => {
  const phases = registerDefaultPhases(createRegistry());
  registerReadiness(phases, { kind: 'Boxes', group: 'other.dev' }, () => ({ status: 'Current' }) as never);
  await using world = new World({ phases });
  await world.start();
  await world.app([{ kind: 'otherBoxes', id: 'a' }]);
  expect(await world.condition('Ready')).toBe('True Ready');
  world.takeWrites();
  await world.restart();
  await world.environment.advance(60_000);
  expect(world.takeWrites()).toEqual([]);
});

test('times that are none are refused where they are given', () => {
  for (const requeueAfterMs of [Number.NaN, Infinity, -1])
    expect(() => createRegistry().register('P', async () => true, 'create', withCustomRequeueResult({ requeueAfterMs }))).toThrow(
      `phase P: requeueAfterMs: ${isTime}, found ${requeueAfterMs}`,
    );
  const options = { definition: apps as never, children: [boxes], getResources: (): readonly Desired[] => [] };
  for (const field of ['resyncMs', 'deadlineMs'] as const)
    for (const ms of [0, -5, Number.NaN, Infinity])
      expect(() => defineWorkload({ ...options, [field]: ms })).toThrow(
        `${field}: InvalidWorkload: expected a finite number of milliseconds above 0, found ${ms}`,
      );
});
