import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ManualEnvironment } from '../testing/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { TaskContext, TaskRunner } from './task-runner.ts';
import { createTaskRunner } from './task-runner.ts';

type Spec = { readonly url: string };

let environment: ManualEnvironment;
let tasks: TaskRunner<Spec>;
let steps: string[];
/** How long a task goes on after it was told to end, milliseconds. */
let lingersMs: number;
let failures: number;

beforeEach(() => {
  environment = manualEnvironment();
  steps = [];
  lingersMs = 0;
  failures = 0;
  tasks = createTaskRunner<Spec>({ environment, run });
});

afterEach(async () => {
  lingersMs = 0;
  await tasks.stopAll();
  expect(environment.open.counts()).toEqual({});
});

async function run({ key, spec, signal }: TaskContext<Spec>): Promise<void> {
  steps.push(`${key} ${spec.url} starts`);
  if (failures-- > 0) throw new Error('cannot connect');
  if (spec.url === 'short') return;
  await environment.sleep(1e9, signal).catch(() => {});
  if (lingersMs > 0) await environment.sleep(lingersMs);
  steps.push(`${key} ${spec.url} ends`);
}

test('starts what is wanted, stops what is not, starts anew what has changed', async () => {
  await tasks.reconcile(
    new Map([
      ['a', { url: '1' }],
      ['b', { url: '1' }],
    ]),
  );
  await environment.settle();
  expect(steps.splice(0)).toEqual(['a 1 starts', 'b 1 starts']);
  await tasks.reconcile(
    new Map([
      ['b', { url: '2' }],
      ['c', { url: '1' }],
    ]),
  );
  await environment.settle();
  expect(steps.splice(0).toSorted()).toEqual(['a 1 ends', 'b 1 ends', 'b 2 starts', 'c 1 starts']);
  expect(tasks.keys()).toEqual(['b', 'c']);
  // The same once more, by value.
  expect(tasks.start('b', { url: '2' })).toBe(false);
  await environment.settle();
  expect(steps).toEqual([]);
});

test('two of one key never overlap, however quickly they follow', async () => {
  lingersMs = 50;
  for (const url of ['1', '2', '3']) tasks.start('a', { url });
  void tasks.stop('a');
  tasks.start('a', { url: '4' });
  await environment.advance(1000);
  expect(steps).toEqual(['a 1 starts', 'a 1 ends', 'a 4 starts']);
});

test('a stop waits for the end', async () => {
  lingersMs = 50;
  tasks.start('a', { url: '1' });
  await environment.settle();
  let stopped = false;
  const stopping = tasks.stop('a').then(() => {
    stopped = true;
  });
  await environment.advance(49);
  expect(stopped).toBe(false);
  await environment.advance(1);
  await stopping;
  expect(steps.at(-1)).toBe('a 1 ends');
  await tasks.stop('none');
});

test('one that throws is started again with back-off, one that returns has finished', async () => {
  failures = 3;
  tasks.start('a', { url: 'short' });
  await environment.settle();
  expect(steps).toHaveLength(1);
  await environment.advance(60_000);
  expect(steps).toHaveLength(4);
  expect(tasks.start('a', { url: 'short' })).toBe(false);
  expect(tasks.start('a', { url: '2' })).toBe(true);
  await environment.settle();
  expect(steps.at(-1)).toBe('a 2 starts');
});

test('a stop ends the wait for the next start', async () => {
  failures = 1e9;
  tasks.start('a', { url: '1' });
  await environment.settle();
  await tasks.stop('a');
  await environment.advance(60_000);
  expect(steps).toHaveLength(1);
});

test('specs may be compared otherwise', async () => {
  tasks = createTaskRunner<Spec>({ environment, run, same: (left, right) => left.url.length === right.url.length });
  tasks.start('a', { url: '1' });
  expect(tasks.start('a', { url: '2' })).toBe(false);
  expect(tasks.start('a', { url: '22' })).toBe(true);
});
