import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findCondition, messageLimit, removeCondition, setCondition } from './conditions.ts';
import type { Condition } from './port.ts';

const next = (change: Partial<Condition> = {}): Omit<Condition, 'lastTransitionTime'> => ({
  type: 'Ready',
  status: 'False',
  reason: 'Pending',
  message: '',
  observedGeneration: 1,
  ...change,
});

describe('setCondition', () => {
  test('the transition time moves only with the status', () => {
    const conditions: Condition[] = [];
    setCondition(conditions, next(), 'T1');
    setCondition(conditions, next({ reason: 'Other', message: 'text', observedGeneration: 2 }), 'T2');
    expect(conditions).toEqual([{ ...next({ reason: 'Other', message: 'text', observedGeneration: 2 }), lastTransitionTime: 'T1' }]);
    setCondition(conditions, next({ status: 'True' }), 'T3');
    expect(conditions[0]?.lastTransitionTime).toBe('T3');
  });

  test('messages are cut at the limit', () => {
    const conditions: Condition[] = [];
    setCondition(conditions, next({ message: 'x'.repeat(messageLimit + 1) }), 'T');
    expect(conditions[0]?.message).toHaveLength(messageLimit);
  });

  test('reasons have the form of metav1.Condition, whatever is given', () => {
    const form = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constantFrom('Pending', '9Lives', 'a b', 'x:', '')), (reason) => {
        const conditions: Condition[] = [];
        setCondition(conditions, next({ reason }), 'T');
        expect(conditions[0]?.reason).toMatch(form);
        if (form.test(reason)) expect(conditions[0]?.reason).toBe(reason);
      }),
    );
  });

  test('a type is there once, whatever is done', () => {
    const type = fc.constantFrom('A', 'B', 'C');
    const step = fc.oneof(
      fc.record({ set: type, status: fc.constantFrom('True' as const, 'False' as const, 'Unknown' as const) }),
      fc.record({ remove: type }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const conditions: Condition[] = [];
        const model = new Map<string, { status: string; since: string }>();
        steps.forEach((each, index) => {
          const at = `T${index}`;
          if ('remove' in each) {
            removeCondition(conditions, each.remove);
            model.delete(each.remove);
          } else {
            setCondition(conditions, next({ type: each.set, status: each.status }), at);
            const before = model.get(each.set);
            if (before?.status !== each.status) model.set(each.set, { status: each.status, since: at });
          }
        });
        expect(conditions).toHaveLength(model.size);
        for (const [name, { status, since }] of model)
          expect(findCondition(conditions, name)).toMatchObject({ status, lastTransitionTime: since });
      }),
    );
  });
});
