import { describe, expect, test } from 'vitest';
import type { Condition, Live } from './port.ts';
import { areReady, isReady, ReadinessRules, readiness, registerReadiness } from './readiness.ts';

const live = (more: Partial<Live> = {}): Live => ({
  ref: { group: 'example.dev', kind: 'Boxes', version: 'v1', namespace: 'default', name: 'a' },
  uid: 'u',
  version: '5',
  generation: 3,
  deleting: false,
  finalizers: [],
  labels: {},
  annotations: {},
  owner: '',
  body: {},
  status: undefined,
  ...more,
});
const condition = (type: string, status: Condition['status'], observedGeneration?: number): Partial<Condition> => ({
  type,
  status,
  reason: `${type}Reason`,
  message: 'why',
  ...(observedGeneration !== undefined && { observedGeneration }),
});
const status = (more: Partial<Live>): string => readiness(live(more)).status;

describe('readiness, in the order of its rules', () => {
  test('an absent child is NotFound, never an error', () => {
    expect(readiness(undefined)).toMatchObject({ status: 'NotFound', reason: 'NotFound' });
  });

  test('deletion counts before all', () => {
    expect(status({ deleting: true, status: { observedGeneration: 1, conditions: [condition('Ready', 'True')] } })).toBe('Terminating');
  });

  test('a generation that was not observed', () => {
    expect(readiness(live({ status: { observedGeneration: 2, conditions: [condition('Ready', 'True')] } }))).toMatchObject({
      status: 'InProgress',
      reason: 'NotObserved',
    });
    expect(status({ status: { observedGeneration: 3 } })).toBe('Current');
    expect(status({ generation: undefined, status: { observedGeneration: 2 } })).toBe('Current');
  });

  test('on the embedded store: a version that was not observed', () => {
    const stalled = { observedVersion: '4', conditions: [condition('Stalled', 'True')] };
    expect(status({ generation: undefined, status: stalled })).toBe('InProgress');
    expect(status({ generation: undefined, status: { ...stalled, observedVersion: '5' } })).toBe('Failed');
  });

  test('the first of Reconciling and Stalled', () => {
    expect(readiness(live({ status: { conditions: [condition('Reconciling', 'True'), condition('Stalled', 'True')] } }))).toEqual({
      status: 'InProgress',
      reason: 'ReconcilingReason',
      message: 'why',
    });
    expect(status({ status: { conditions: [condition('Stalled', 'True'), condition('Reconciling', 'True')] } })).toBe('Failed');
    expect(status({ status: { conditions: [condition('Stalled', 'False'), condition('Ready', 'True')] } })).toBe('Current');
  });

  test("a kind's own rule is final, and one that throws fails that child only", () => {
    const registry = { readiness: new ReadinessRules() };
    registerReadiness(registry, { group: 'example.dev', kind: 'Boxes' }, ({ body }) =>
      (body as { open?: boolean }).open === true ? undefined : { status: 'InProgress', reason: 'Closed', message: '', recheckAfterMs: 5 },
    );
    registerReadiness(registry, { group: 'other.dev', kind: 'Boxes' }, () => {
      throw new Error('what box?');
    });
    const ready = { conditions: [condition('Ready', 'True')] };
    expect(readiness(live({ status: ready }), registry.readiness)).toMatchObject({ reason: 'Closed', recheckAfterMs: 5 });
    expect(readiness(live({ status: ready, body: { open: true } }), registry.readiness).status).toBe('Current');
    const elsewhere = live({ ref: { ...live().ref, group: 'other.dev' } });
    expect(readiness(elsewhere, registry.readiness)).toEqual({ status: 'Failed', reason: 'RuleFailed', message: 'what box?' });
  });

  test("on the embedded store the definition's answer counts before a condition Ready", () => {
    const ready = { status: 'InProgress', reason: 'Warming', message: '' } as const;
    expect(readiness(live({ ready, status: { conditions: [condition('Ready', 'True')] } }))).toBe(ready);
  });

  test('the condition Ready, at the present generation', () => {
    expect(status({ status: { conditions: [condition('Ready', 'True', 3)] } })).toBe('Current');
    expect(status({ status: { conditions: [condition('Ready', 'True', 2)] } })).toBe('InProgress');
    expect(status({ status: { conditions: [condition('Ready', 'False', 3)] } })).toBe('InProgress');
    expect(status({ status: { conditions: [condition('Ready', 'Unknown', 3)] } })).toBe('InProgress');
  });

  test('what says nothing is Current; a status that is no record does not disturb', () => {
    for (const odd of [undefined, null, 'text', 5, [], { conditions: 'none' }, {}]) expect(status({ status: odd })).toBe('Current');
  });
});

test('isReady and areReady', () => {
  expect(isReady(live())).toBe(true);
  expect(isReady(undefined)).toBe(false);
  expect(areReady([live(), live()])).toBe(true);
  expect(areReady([live(), undefined])).toBe(false);
  expect(areReady([])).toBe(true);
});
