import { describe, expect, test } from 'vitest';
import type { Readiness, Resource } from '../../resource/index.ts';
import { digest, makeResource } from '../../resource/index.ts';
import { resourceReadiness } from './readiness.ts';

const resource = (phase: 'running' | 'tearingDown' = 'running'): Resource => {
  const made = makeResource({ metadata: { namespace: 'default', type: 'Boxes.example.dev', id: 'a', phase }, spec: { size: 1 } });
  return { ...made, metadata: { ...made.metadata, version: '7' } };
};
const companion = (spec: unknown): Resource =>
  makeResource({ metadata: { namespace: 'default', type: 'BoxStatuses.example.dev', id: 'a' }, spec });
const withStatus = { ready: undefined, statusType: 'BoxStatuses.example.dev' };
const status = (definition: Parameters<typeof resourceReadiness>[0], spec?: unknown): string => {
  const { status: found, reason } = resourceReadiness(definition, resource(), spec === undefined ? undefined : companion(spec));
  return `${found} ${reason}`;
};

describe('readiness of a resource of the embedded store', () => {
  test('torn down is Terminating, whatever a rule says', () => {
    expect(resourceReadiness({ ready: () => true, statusType: undefined }, resource('tearingDown'), undefined).status).toBe('Terminating');
  });

  test("the definition's rule counts: true, false, or all of it; one that throws fails this resource", () => {
    const rule = (ready: () => boolean | Readiness): string => status({ ready, statusType: 'BoxStatuses.example.dev' }, { ready: false });
    expect(rule(() => true)).toBe('Current Current');
    expect(rule(() => false)).toBe('InProgress NotReady');
    expect(rule(() => ({ status: 'Failed', reason: 'Cracked', message: '' }))).toBe('Failed Cracked');
    expect(
      rule(() => {
        throw new Error('unreadable');
      }),
    ).toBe('Failed RuleFailed');
  });

  test('without rule and companion: that it exists', () => {
    expect(status(undefined)).toBe('Current Current');
    expect(status({ ready: undefined, statusType: undefined })).toBe('Current Current');
  });

  test('a companion counts only when it was computed from this spec', () => {
    expect(status(withStatus)).toBe('InProgress NoStatus');
    expect(status(withStatus, { ready: true })).toBe('InProgress NotObserved');
    expect(status(withStatus, { ready: true, observedVersion: '6' })).toBe('InProgress NotObserved');
    expect(status(withStatus, { ready: true, observedVersion: '7' })).toBe('Current Current');
    expect(status(withStatus, { ready: true, observedDigest: digest({ size: 1 }) })).toBe('Current Current');
    expect(status(withStatus, { ready: true, observedDigest: digest({ size: 2 }), observedVersion: '7' })).toBe('InProgress NotObserved');
  });

  test('its conditions, else its field ready, else that it is there', () => {
    const seen = { observedVersion: '7' };
    const condition = (type: string, value: string): object => ({ type, status: value, reason: `${type}Reason`, message: '' });
    expect(status(withStatus, { ...seen, ready: true, conditions: [condition('Ready', 'False')] })).toBe('InProgress ReadyReason');
    expect(status(withStatus, { ...seen, conditions: [condition('Ready', 'True')] })).toBe('Current Current');
    expect(status(withStatus, { ...seen, conditions: [condition('Ready', 'False'), condition('Stalled', 'True')] })).toBe(
      'Failed StalledReason',
    );
    expect(status(withStatus, { ...seen, conditions: [] })).toBe('InProgress NotReady');
    expect(status(withStatus, { ...seen, ready: false, reason: 'Warming' })).toBe('InProgress Warming');
    expect(status(withStatus, seen)).toBe('Current Current');
    expect(status(withStatus, null)).toBe('InProgress NotObserved');
  });
});
