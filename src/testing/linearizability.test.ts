import { describe, expect, test } from 'vitest';
import type { RecordedCall, SequentialModel } from './linearizability.ts';
import { findNonLinearizableKey } from './linearizability.ts';

type Input = { readonly write: number } | 'read';
const register: SequentialModel<number, Input, number | undefined> = {
  initial: 0,
  step: (state, input, output) => {
    if (input === 'read') return output === state ? state : undefined;
    return input.write;
  },
};

const call = (
  input: Input,
  output: number | undefined,
  began: number,
  ended: number,
  key = 'x',
): RecordedCall<Input, number | undefined> => ({
  key,
  input,
  output,
  began,
  ended,
});

describe('findNonLinearizableKey', () => {
  test('accepts what happened one after another', () => {
    const history = [call('read', 0, 0, 1), call({ write: 1 }, undefined, 2, 3), call('read', 1, 4, 5)];
    expect(findNonLinearizableKey(history, register)).toBeUndefined();
  });

  test('accepts either order of calls that overlap', () => {
    for (const seen of [0, 1]) {
      const history = [call({ write: 1 }, undefined, 0, 5), call('read', seen, 1, 2)];
      expect(findNonLinearizableKey(history, register)).toBeUndefined();
    }
  });

  test('refuses a read that is older than a write that had ended', () => {
    const history = [call({ write: 1 }, undefined, 0, 1), call('read', 0, 2, 3)];
    expect(findNonLinearizableKey(history, register)).toBe('x');
  });

  test('refuses two readers that see a write and then do not', () => {
    const history = [call({ write: 1 }, undefined, 0, 10), call('read', 1, 1, 2), call('read', 0, 3, 4)];
    expect(findNonLinearizableKey(history, register)).toBe('x');
  });

  test('a write of unknown outcome may have happened late, or never', () => {
    const never = Number.POSITIVE_INFINITY;
    expect(findNonLinearizableKey([call({ write: 1 }, undefined, 0, never), call('read', 0, 2, 3)], register)).toBeUndefined();
    expect(
      findNonLinearizableKey([call({ write: 1 }, undefined, 0, never), call('read', 0, 2, 3), call('read', 1, 4, 5)], register),
    ).toBeUndefined();
    expect(findNonLinearizableKey([call({ write: 1 }, undefined, 0, never), call('read', 1, 2, 3), call('read', 0, 4, 5)], register)).toBe(
      'x',
    );
  });

  test('keys are looked at one by one', () => {
    const history = [call({ write: 1 }, undefined, 0, 1, 'good'), call('read', 1, 2, 3, 'good'), call('read', 7, 0, 1, 'bad')];
    expect(findNonLinearizableKey(history, register)).toBe('bad');
  });

  test('many calls that all overlap are decided quickly', () => {
    const history = Array.from({ length: 14 }, (_, index) => call({ write: index }, undefined, 0, 100));
    expect(findNonLinearizableKey([...history, call('read', 99, 200, 201)], register)).toBe('x');
    expect(findNonLinearizableKey([...history, call('read', 3, 200, 201)], register)).toBeUndefined();
  });
});
