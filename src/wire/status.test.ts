import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../resource/index.ts';
import { SteadystateError } from '../resource/index.ts';
import {
  alreadyExists,
  ambiguous,
  incarnationConflict,
  invalidBookmark,
  notFound,
  ownerConflict,
  pendingFinalizers,
  phaseConflict,
  versionConflict,
} from '../state/index.ts';
import type { CallName } from './status.ts';
import { fromStatus, grpcCodes, toStatus } from './status.ts';

const pointer = { namespace: 'default', type: 'Things.example.dev', id: 'a/ü' };
const calls: readonly CallName[] = ['get', 'list', 'create', 'update', 'destroy', 'watch', 'teardown', 'teardownAndDestroy', 'control'];
const errors: readonly SteadystateError[] = [
  notFound(pointer),
  alreadyExists(pointer),
  versionConflict(pointer, '1', '2'),
  incarnationConflict(pointer, '1', '2'),
  ownerConflict(pointer, 'A', 'B'),
  phaseConflict(pointer, 'running', 'tearingDown'),
  pendingFinalizers(pointer, ['f']),
  invalidBookmark('old'),
  ambiguous(pointer, 'lost'),
  new SteadystateError('Invalid', 'bad\nfield', { pointer, issues: [{ path: 'spec.a[0]', message: 'expected text' }] }),
  new SteadystateError('Throttled', 'slow down', { retryAfterMs: 1500 }),
  new SteadystateError('Locked', 'locked', { holder: 'pid 1' }),
  new SteadystateError('Unsupported', 'not served', { kind: { namespace: 'default', type: 'Things.example.dev' } }),
  ...(['Unsupported', 'Unavailable', 'NoSpace', 'Corrupt', 'Forbidden', 'Unauthenticated', 'Timeout', 'Gone', 'Closed'] as ErrorCode[]).map(
    (code) => new SteadystateError(code, code),
  ),
];

describe('to a status', () => {
  const about: readonly [SteadystateError, CallName, keyof typeof grpcCodes][] = [
    [notFound(pointer), 'get', 'notFound'],
    [alreadyExists(pointer), 'create', 'alreadyExists'],
    [ownerConflict(pointer, 'A', 'B'), 'create', 'permissionDenied'],
    [ownerConflict(pointer, 'A', 'B'), 'update', 'permissionDenied'],
    [new SteadystateError('Forbidden', 'no'), 'list', 'permissionDenied'],
    [phaseConflict(pointer, 'running', 'tearingDown'), 'update', 'invalidArgument'],
    [versionConflict(pointer, '1', '2'), 'update', 'failedPrecondition'],
    [pendingFinalizers(pointer, ['f']), 'destroy', 'failedPrecondition'],
    [incarnationConflict(pointer, '1', '2'), 'destroy', 'failedPrecondition'],
    [new SteadystateError('Invalid', 'bad'), 'update', 'unknown'],
    [new SteadystateError('Invalid', 'bad'), 'create', 'invalidArgument'],
    [new SteadystateError('Invalid', 'bad'), 'watch', 'invalidArgument'],
    [invalidBookmark('old'), 'watch', 'failedPrecondition'],
    [new SteadystateError('Unsupported', 'no'), 'watch', 'unimplemented'],
    [ambiguous(pointer, 'lost'), 'update', 'unknown'],
    [new SteadystateError('NoSpace', 'full'), 'create', 'resourceExhausted'],
    [new SteadystateError('Throttled', 'slow'), 'get', 'resourceExhausted'],
    [new SteadystateError('Corrupt', 'bad'), 'get', 'dataLoss'],
    [new SteadystateError('Unauthenticated', 'who'), 'get', 'unauthenticated'],
  ];
  test.each(about)('%s on %s → %s', (error, call, code) => expect(toStatus(error, call).code).toBe(grpcCodes[code]));

  test('nothing but a phase conflict is INVALID_ARGUMENT on an update: a Go client takes it for one', () => {
    for (const error of errors)
      expect(toStatus(error, 'update').code === grpcCodes.invalidArgument, error.message).toBe(error.reason === 'phase');
  });

  test('the start of a watch is FAILED_PRECONDITION for a bad bookmark only', () => {
    const possible = errors.filter(({ code }) => code !== 'Conflict');
    for (const error of possible)
      expect(toStatus(error, 'watch').code === grpcCodes.failedPrecondition, error.code).toBe(error.code === 'InvalidBookmark');
  });

  test('never UNIMPLEMENTED on the two teardown calls: a client would take the call for missing', () => {
    for (const error of errors)
      for (const call of ['teardown', 'teardownAndDestroy'] as const)
        expect(toStatus(error, call).code, error.code).not.toBe(grpcCodes.unimplemented);
  });

  test('an error that nobody foresaw leaves the outcome of a write unknown', () => {
    expect(toStatus(new TypeError('x'), 'update').code).toBe(grpcCodes.unknown);
    expect(toStatus(new TypeError('x'), 'get').code).toBe(grpcCodes.unavailable);
  });

  test('details stay small enough for headers', () => {
    const issues = Array.from({ length: 1000 }, (_, index) => ({ path: `spec.${'x'.repeat(1000)}${index}`, message: 'y'.repeat(1000) }));
    const status = toStatus(new SteadystateError('Invalid', 'z'.repeat(100_000), { pointer, issues }), 'create');
    expect(status.details.length + status.message.length).toBeLessThan(32 * 1024);
    expect(fromStatus(status, { call: 'create', sent: true })).toMatchObject({ code: 'Invalid', pointer });
  });
});

describe('from a status', () => {
  test('our own client rebuilds every error of every call exactly', () => {
    for (const error of errors) {
      for (const call of calls) {
        const { code, message, reason, issues, retryAfterMs, holder } = error;
        const rebuilt = fromStatus(toStatus(error, call), { call, sent: true });
        expect(rebuilt).toMatchObject({ code, message, reason, issues, retryAfterMs, holder });
        expect(rebuilt.pointer).toEqual(error.pointer);
      }
    }
  });

  test.each([['unavailable'], ['deadlineExceeded'], ['cancelled'], ['internal'], ['unknown'], ['resourceExhausted']] as const)(
    'a bare %s after a mutation was sent is Ambiguous, on a read it is not',
    (name) => {
      const status = { code: grpcCodes[name], message: 'm' };
      for (const call of ['create', 'update', 'destroy', 'teardown', 'teardownAndDestroy'] as const) {
        expect(fromStatus(status, { call, pointer, sent: true })).toMatchObject({ code: 'Ambiguous', pointer });
        expect(fromStatus(status, { call, pointer, sent: false }).code).not.toBe('Ambiguous');
      }
      for (const call of ['get', 'list', 'watch'] as const) expect(fromStatus(status, { call, sent: true }).code).not.toBe('Ambiguous');
    },
  );

  test.each<[keyof typeof grpcCodes, CallName, object]>([
    ['notFound', 'get', { code: 'NotFound', pointer }],
    ['alreadyExists', 'create', { code: 'Conflict', reason: 'alreadyExists' }],
    ['permissionDenied', 'update', { code: 'Conflict', reason: 'owner' }],
    ['permissionDenied', 'get', { code: 'Forbidden' }],
    ['invalidArgument', 'update', { code: 'Conflict', reason: 'phase' }],
    ['invalidArgument', 'create', { code: 'Invalid' }],
    ['failedPrecondition', 'update', { code: 'Conflict', reason: 'version' }],
    ['failedPrecondition', 'destroy', { code: 'Conflict', reason: 'pendingFinalizers' }],
    ['failedPrecondition', 'watch', { code: 'InvalidBookmark' }],
    ['unimplemented', 'teardown', { code: 'Unsupported' }],
    ['resourceExhausted', 'get', { code: 'NoSpace' }],
    ['dataLoss', 'get', { code: 'Corrupt' }],
    ['unauthenticated', 'create', { code: 'Unauthenticated' }],
    ['deadlineExceeded', 'get', { code: 'Timeout' }],
    ['unavailable', 'get', { code: 'Unavailable' }],
  ])('a bare %s of a Go server on %s', (name, call, expected) => {
    expect(fromStatus({ code: grpcCodes[name], message: 'm' }, { call, pointer, sent: true })).toMatchObject(expected);
  });

  test('a code that is not known here is read by its status: a write stays Ambiguous', () => {
    const text = toStatus(new SteadystateError('Locked', 'm'), 'update').details.toString('latin1');
    const details = Buffer.from(text.replace('Locked', 'Fenced'), 'latin1');
    expect(details.includes('Fenced')).toBe(true);
    expect(fromStatus({ code: grpcCodes.unknown, message: 'm', details }, { call: 'update', sent: true }).code).toBe('Ambiguous');
    expect(fromStatus({ code: grpcCodes.notFound, message: 'm', details }, { call: 'get', sent: true }).code).toBe('NotFound');
  });

  test('details of others, and details that cannot be read, tell nothing', () => {
    const status = { code: grpcCodes.notFound, message: 'm', details: Uint8Array.of(0x80, 0xff) };
    expect(fromStatus(status, { call: 'get', sent: true }).code).toBe('NotFound');
  });
});
