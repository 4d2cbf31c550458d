import { describe, expect, test } from 'vitest';
import type { ErrorCode } from './index.ts';
import * as resource from './index.ts';
import { errorCode, findError, isConflictError, isNotFoundError, isOwnerConflictError, SteadystateError } from './index.ts';

const pointer = { namespace: 'default', type: 'Things.example.dev', id: 'a' };

describe('predicates', () => {
  test('every code has one, which answers for it and for no other', () => {
    const codes: ErrorCode[] = [
      'NotFound',
      'Conflict',
      'InvalidBookmark',
      'Unsupported',
      'Invalid',
      'Ambiguous',
      'Unavailable',
      'NoSpace',
      'Corrupt',
      'Forbidden',
      'Unauthenticated',
      'Throttled',
      'Locked',
      'Timeout',
      'Gone',
      'Closed',
    ];
    for (const code of codes) {
      const predicate = (resource as unknown as Record<string, (error: unknown) => boolean>)[`is${code}Error`];
      expect(predicate, code).toBeTypeOf('function');
      for (const other of codes) expect(predicate?.(new SteadystateError(other, 'x')), `${code} of ${other}`).toBe(code === other);
    }
  });

  test('see through causes, also circular ones', () => {
    const inner = new SteadystateError('NotFound', 'x', { pointer });
    const outer = new Error('outer', { cause: new Error('middle', { cause: inner }) });
    expect([isNotFoundError(outer), findError(outer), errorCode(outer)]).toEqual([true, inner, 'NotFound']);
    const circular = new Error('circular');
    circular.cause = circular;
    expect(isNotFoundError(circular)).toBe(false);
    for (const nothing of [undefined, null, 'text', 5, {}, new Error('x'), { name: 'SteadystateError', code: 'Odd' }])
      expect(findError(nothing)).toBeUndefined();
  });

  test('go by code, so that an error of another copy of the package is known', () => {
    const foreign = Object.assign(new Error('x'), { name: 'SteadystateError', code: 'Conflict', reason: 'owner', pointer });
    expect([isConflictError(foreign), isOwnerConflictError(foreign), isNotFoundError(foreign)]).toEqual([true, true, false]);
  });

  test('isConflictError is true for every reason, and can be narrowed', () => {
    for (const reason of ['alreadyExists', 'version', 'incarnation', 'pendingFinalizers', 'owner', 'phase'] as const) {
      const error = new SteadystateError('Conflict', 'x', { reason, pointer });
      expect(isConflictError(error)).toBe(true);
      expect(isConflictError(error, { namespace: 'default' })).toBe(true);
      expect(isConflictError(error, { type: pointer.type, namespace: 'default' })).toBe(true);
      expect(isConflictError(error, { namespace: 'other' })).toBe(false);
      expect(isConflictError(error, { type: 'Others.example.dev' })).toBe(false);
    }
    expect(isConflictError(new SteadystateError('Conflict', 'x'), { namespace: 'default' })).toBe(false);
  });
});
