import { afterEach, expect, test } from 'vitest';
import type { Dependency } from '../../src/workload/index.ts';
import { refIn } from './fake-port.ts';
import { Harness, rooms } from './harness.ts';

let harness: Harness;

afterEach(() => expect(harness.environment.open.counts()).toEqual({}));

const room = { group: 'example.dev', kind: 'Rooms' };
const ready = { conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }] };
const unready = { conditions: [{ type: 'Ready', status: 'False', reason: 'Painting', message: 'wet' }] };

function needing(dependency: Partial<Dependency>): Harness {
  harness = new Harness({ dependencies: () => [{ ...room, ...dependency }], dependencyKinds: [rooms] });
  harness.ask({ a: 1 });
  return harness;
}

test('children wait for what the workload depends on, and the message names it', async () => {
  needing({ name: 'hall' });
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 5000 });
  expect(harness.condition('Dependency')).toBe('False DependencyNotReady');
  expect(harness.message('Dependency')).toBe('Rooms hall in namespace default does not exist');
  expect(harness.present).toEqual([]);
  harness.port.put({ ref: refIn(rooms, 'hall'), status: unready });
  await harness.environment.advance(60_000);
  await harness.reconcile();
  expect(harness.message('Dependency')).toContain('Painting');
  harness.port.change(refIn(rooms, 'hall'), { status: ready });
  await harness.settle();
  expect(harness.condition('Ready')).toBe('True Ready');
});

test('unready later: the children are kept up, Ready is not, nothing is deleted', async () => {
  needing({ name: 'hall' });
  harness.port.put({ ref: refIn(rooms, 'hall'), status: ready });
  await harness.settle();
  harness.port.destroy(refIn(rooms, 'hall'));
  harness.ask({ a: 2, b: 1 });
  await harness.settle();
  expect(harness.present).toEqual(['a', 'b']);
  expect(harness.condition('Ready')).toBe('False DependencyNotReady');
  expect(harness.condition('Create-Resources')).toBe('True Complete');
});

test('all: every one, and at least one; any: one is enough', async () => {
  for (const [require, expected] of [
    ['all', 'False'],
    ['any', 'True'],
  ] as const) {
    needing({ require });
    await harness.reconcile();
    expect(harness.condition('Dependency')).toMatch(/^False/);
    harness.port.put({ ref: refIn(rooms, 'hall'), status: ready });
    harness.port.put({ ref: refIn(rooms, 'attic'), status: unready });
    await harness.settle();
    expect(harness.condition('Dependency')).toMatch(new RegExp(`^${expected}`));
  }
});

test('another namespace counts only when it is asked for', async () => {
  for (const [namespace, expected] of [
    [undefined, 'False'],
    ['other', 'True'],
    ['*', 'True'],
  ] as const) {
    needing({ name: 'hall', ...(namespace && { namespace }) });
    harness.port.put({ ref: refIn(rooms, 'hall', 'other'), status: ready });
    await harness.settle();
    expect([namespace, harness.condition('Dependency').split(' ')[0]]).toEqual([namespace, expected]);
  }
});

test('only those with the labels count', async () => {
  needing({ labels: { floor: '2' } });
  harness.port.put({ ref: refIn(rooms, 'hall'), status: unready });
  harness.port.put({ ref: refIn(rooms, 'attic'), status: ready, labels: { floor: '2' } });
  await harness.settle();
  expect(harness.condition('Dependency')).toBe('True Complete');
});

test('a Ready of an older generation does not count; created counts only without a condition', async () => {
  const cases = [
    [{ conditions: [{ ...ready.conditions[0], observedGeneration: 1 }] }, 2, 'False'],
    [{ conditions: [{ ...ready.conditions[0], observedGeneration: 2 }] }, 2, 'True'],
    [{ created: true }, undefined, 'True'],
    [{ created: false }, undefined, 'False'],
    [{ created: true, ...unready }, undefined, 'False'],
  ] as const;
  for (const [status, generation, expected] of cases) {
    needing({ name: 'hall' });
    harness.port.put({ ref: refIn(rooms, 'hall'), status, generation });
    await harness.settle();
    expect([status, harness.condition('Dependency').split(' ')[0]]).toEqual([status, expected]);
  }
});

test('a deletion asks for no dependency', async () => {
  needing({ name: 'hall' });
  harness.port.put({ ref: refIn(rooms, 'hall'), status: ready });
  await harness.settle();
  harness.port.destroy(refIn(rooms, 'hall'));
  harness.port.user(harness.view.key, { deleting: true });
  await harness.settle();
  expect([harness.present, harness.view.finalizers]).toEqual([[], []]);
});
