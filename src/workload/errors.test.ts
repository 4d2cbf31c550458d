import { describe, expect, test } from 'vitest';
import { SteadystateError } from '../resource/index.ts';
import {
  ChildrenError,
  classify,
  isOptimisticLockError,
  joinErrors,
  ReconcileError,
  retryAfterMs,
  terminalError,
  terminalReason,
} from './errors.ts';

const conflict = (reason: 'version' | 'alreadyExists' | 'incarnation' | 'owner' | 'phase' | 'pendingFinalizers'): SteadystateError =>
  new SteadystateError('Conflict', `conflict: ${reason}`, { reason });
const unavailable = new SteadystateError('Unavailable', 'nobody answers');
const throttled = (ms: number): SteadystateError => new SteadystateError('Throttled', 'slower', { retryAfterMs: ms });

describe('classify', () => {
  test.each([
    [conflict('version'), 'conflict'],
    [conflict('alreadyExists'), 'failed'],
    [conflict('incarnation'), 'failed'],
    [conflict('owner'), 'failed'],
    [unavailable, 'transient'],
    [throttled(10), 'transient'],
    [new SteadystateError('Ambiguous', 'who knows'), 'transient'],
    [new SteadystateError('Timeout', 'late'), 'transient'],
    [new SteadystateError('Forbidden', 'no'), 'failed'],
    [new SteadystateError('Invalid', 'no'), 'terminal'],
    [terminalError('Wrong', 'no'), 'terminal'],
    [new Error('wrapped', { cause: terminalError('Wrong', 'no') }), 'terminal'],
    [new Error('wrapped', { cause: conflict('version') }), 'conflict'],
    [new Error('anything'), 'failed'],
    ['text', 'failed'],
  ] as const)('%s is %s', (error, expected) => {
    expect(classify(error)).toBe(expected);
  });

  test('several children: only conflicts are a conflict, and one that can be mended by a try keeps the others from being final', () => {
    expect(classify(new ChildrenError([conflict('version'), conflict('version')]))).toBe('conflict');
    expect(classify(new ChildrenError([conflict('version'), unavailable]))).toBe('transient');
    expect(classify(new ChildrenError([conflict('version'), new Error('x')]))).toBe('failed');
    expect(classify(new ChildrenError([terminalError('A', 'a'), terminalError('B', 'b')]))).toBe('terminal');
    expect(classify(new ChildrenError([terminalError('A', 'a'), unavailable]))).toBe('failed');
  });
});

describe('isOptimisticLockError', () => {
  test('goes by code and reason, never by message', () => {
    expect(isOptimisticLockError(conflict('version'))).toBe(true);
    expect(isOptimisticLockError(new Error('the object has been modified; please apply your changes to the latest version'))).toBe(false);
    expect(isOptimisticLockError(conflict('alreadyExists'))).toBe(false);
    expect(isOptimisticLockError(conflict('incarnation'))).toBe(false);
    expect(isOptimisticLockError(undefined)).toBe(false);
    expect(isOptimisticLockError(null)).toBe(false);
  });
});

test('no error of a child is lost', () => {
  const joined = joinErrors([new Error('a is forbidden'), new Error('b is invalid')]);
  expect(joined).toBeInstanceOf(ChildrenError);
  expect(joined.message).toBe('a is forbidden; b is invalid');
  const one = new Error('alone');
  expect(joinErrors([one])).toBe(one);
});

test("the phase's own error stays first when the status cannot be written either", () => {
  const error = new ReconcileError(conflict('version'), unavailable);
  expect(error.message).toMatch(/^conflict: version \(and the status could not be written: nobody answers\)$/);
  expect(classify(error)).toBe('conflict');
  expect(error.errors[1]).toBe(unavailable);
});

test('reasons of terminal errors', () => {
  expect(terminalReason(terminalError('Wrong', 'no'))).toBe('Wrong');
  expect(terminalReason(new SteadystateError('Invalid', 'no'))).toBe('Invalid');
  expect(terminalReason(new Error('x'))).toBeUndefined();
  const circle = new Error('x');
  circle.cause = circle;
  expect(terminalReason(circle)).toBeUndefined();
});

test('the longest wait that a store asked for counts', () => {
  expect(retryAfterMs(throttled(200))).toBe(200);
  expect(retryAfterMs(new ChildrenError([throttled(200), throttled(900), new Error('x')]))).toBe(900);
  expect(retryAfterMs(new Error('x'))).toBeUndefined();
});
