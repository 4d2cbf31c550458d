import { afterEach, describe, expect, test } from 'vitest';
import { SteadystateError } from '../../src/resource/index.ts';
import { notFound, versionConflict } from '../../src/state/index.ts';
import type { HandlerFunc, PhaseOption } from '../../src/workload/index.ts';
import {
  createRegistry,
  createResourcesPhase,
  pausedAnnotation,
  pendingError,
  registerDefaultPhases,
  terminalError,
  updateResourceConditions,
  withCustomRequeueResult,
} from '../../src/workload/index.ts';
import { Harness } from './harness.ts';

let harness: Harness;

afterEach(() => expect(harness.environment.open.counts()).toEqual({}));

/** One phase between Create-Resources and the end. */
function withPhase(handler: HandlerFunc, ...options: readonly PhaseOption[]): Harness {
  const registry = createRegistry();
  for (const event of ['create', 'update'] as const)
    registry
      .register('Create-Resources', createResourcesPhase, event)
      .register('Own', handler, event, ...options)
      .register('Last', async () => true, event);
  harness = new Harness({ phases: registry });
  harness.ask({ a: 1 });
  return harness;
}

const conflict = (): Error => versionConflict({ namespace: 'default', type: 'Boxes.example.dev', id: 'a' }, '1', '2');
const unavailable = (): Error => new SteadystateError('Unavailable', 'the store does not answer');

test('all phases complete: Ready, and nothing else to do', async () => {
  withPhase(async () => true);
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(['Create-Resources', 'Own', 'Last'].map((type) => harness.condition(type))).toEqual(Array(3).fill('True Complete'));
  expect(harness.condition('Ready')).toBe('True Ready');
  expect(['Reconciling', 'Stalled'].map((type) => harness.condition(type))).toEqual(['absent', 'absent']);
  expect(harness.status.observedGeneration).toBe(1);
  expect(harness.status.conditions.map(({ observedGeneration }) => observedGeneration)).toEqual([1, 1, 1, 1]);
});

test('not proceeding: the handler’s reason, 1 s, half as long again each time, at most 30 s', async () => {
  withPhase(async () => ({ proceed: false, reason: 'TooEarly', message: 'come back' }));
  const delays: number[] = [];
  for (let count = 0; count < 11; count++) {
    const result = await harness.reconcile();
    if (result.kind === 'requeue') delays.push(result.afterMs);
  }
  expect(delays.slice(0, 4)).toEqual([1000, 1500, 2250, 3375]);
  expect(delays.slice(9)).toEqual([30_000, 30_000]);
  expect(harness.condition('Own')).toBe('False TooEarly');
  expect(harness.condition('Last')).toBe('Unknown NotReached');
  expect(harness.condition('Ready')).toBe('False TooEarly');
  expect(harness.condition('Reconciling')).toBe('True TooEarly');
  expect(harness.condition('Stalled')).toBe('absent');
});

test('the pending counter starts again with a new generation', async () => {
  withPhase(async () => false);
  await harness.reconcile();
  await harness.reconcile();
  harness.ask({ a: 2 });
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 1000 });
  expect(harness.condition('Own')).toBe('False Pending');
});

test('the pending counter starts again with another phase', async () => {
  let last = false;
  const registry = createRegistry()
    .register('First', async () => last, 'create')
    .register('Second', async () => false, 'create');
  harness = new Harness({ phases: registry });
  harness.ask({});
  await harness.reconcile();
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 1500 });
  last = true;
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 1000 });
});

test('a custom result counts when a phase does not proceed, and only then', async () => {
  let proceed = false;
  withPhase(async () => proceed, withCustomRequeueResult({ requeueAfterMs: 7000 }));
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 7000 });
  proceed = true;
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
});

test('the interval of an answer counts over the phase’s own', async () => {
  withPhase(async () => ({ proceed: false, requeueAfterMs: 300 }), withCustomRequeueResult({ requeueAfterMs: 7000 }));
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 300 });
});

test('no custom time at all waits for an event, and is not success', async () => {
  withPhase(async () => false, withCustomRequeueResult({ requeueAfterMs: 0 }));
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(harness.condition('Ready')).toBe('False Pending');
});

test('a thrown "not yet" is pending, not a failure', async () => {
  withPhase(async () => {
    throw pendingError('NoPool', 'the pool is not there', 40);
  });
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 40 });
  expect(harness.condition('Own')).toBe('False NoPool');
});

test('an error: failure back-off whatever the custom result, Failed with its message, later phases not reached', async () => {
  withPhase(
    async () => {
      throw new Error('the disk is full');
    },
    withCustomRequeueResult({ requeueAfterMs: 7000 }),
  );
  expect(await harness.reconcile()).toMatchObject({ kind: 'failure', quiet: false, error: { message: 'the disk is full' } });
  expect(harness.condition('Own')).toBe('False Failed');
  expect(harness.message('Own')).toBe('the disk is full');
  expect(harness.condition('Last')).toBe('Unknown NotReached');
  expect(harness.condition('Reconciling')).toBe('True Failed');
  expect(harness.port.events.map(({ reason }) => reason)).toEqual(['Created', 'PhaseFailed']);
  await harness.reconcile();
  expect(harness.port.events.filter(({ reason }) => reason === 'PhaseFailed')).toHaveLength(1);
});

test('a terminal error is Stalled, never Reconciling too, and not retried; recovery takes it away', async () => {
  let broken = true;
  let early = true;
  withPhase(async () => {
    if (early) return false;
    if (broken) throw terminalError('BadSpec', 'size must be even');
    return true;
  });
  await harness.reconcile();
  expect(harness.condition('Reconciling')).toBe('True Pending');
  early = false;
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(harness.condition('Stalled')).toBe('True BadSpec');
  expect(harness.condition('Ready')).toBe('False BadSpec');
  expect(harness.condition('Reconciling')).toBe('absent');
  broken = false;
  await harness.reconcile();
  expect(harness.condition('Stalled')).toBe('absent');
  expect(harness.condition('Ready')).toBe('True Ready');
});

test('conflicts are quiet until the fifth in a row, and never success', async () => {
  let conflicts = 5;
  withPhase(async () => {
    if (conflicts-- > 0) throw conflict();
    return true;
  });
  for (let count = 1; count <= 4; count++) {
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure', quiet: true });
    expect(harness.status.conditions).toEqual([]);
  }
  expect(harness.port.events.map(({ reason }) => reason)).toEqual(['Created']);
  expect(await harness.reconcile()).toMatchObject({ kind: 'failure', quiet: false });
  expect(harness.condition('Own')).toBe('False Failed');
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  conflicts = 1;
  expect(await harness.reconcile()).toMatchObject({ quiet: true });
  expect(harness.condition('Ready')).toBe('True Ready');
});

test('after a conflict the next reads go past the cache', async () => {
  let fresh: boolean | undefined;
  let conflicts = 1;
  withPhase(async (_reconciler, request) => {
    fresh = request.call.fresh;
    if (conflicts-- > 0) throw conflict();
    return true;
  });
  await harness.reconcile();
  expect(fresh).toBeUndefined();
  await harness.reconcile();
  expect(fresh).toBe(true);
  await harness.reconcile();
  expect(fresh).toBeUndefined();
});

test('what the network does leaves conditions alone until the third in a row', async () => {
  let down = false;
  withPhase(async () => {
    if (down) throw unavailable();
    return true;
  });
  await harness.reconcile();
  down = true;
  for (let count = 0; count < 2; count++) {
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure' });
    expect(harness.condition('Ready')).toBe('True Ready');
  }
  await harness.reconcile();
  expect(harness.condition('Ready')).toBe('False Failed');
  expect(harness.message('Own')).toBe('the store does not answer');
});

test('a store that asks to be left alone is', async () => {
  withPhase(async () => {
    throw new SteadystateError('Throttled', 'slower', { retryAfterMs: 4000 });
  });
  expect(await harness.reconcile()).toMatchObject({ kind: 'failure', afterMs: 4000 });
});

test('completed: the smallest of resync and every recheck', async () => {
  const registry = createRegistry().register(
    'Own',
    async (_reconciler, request) => {
      request.recheckAfterMs = 700;
      return true;
    },
    'create',
  );
  harness = new Harness({ phases: registry, resyncMs: 900 });
  harness.ask({});
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 700 });
});

test('create once, update ever after, also when it is not ready; conditions of the other event go', async () => {
  const ran: string[] = [];
  const registry = registerDefaultPhases(createRegistry());
  registry.register('Migrate', async () => ran.push('create') > 0, 'create');
  registry.register('Refresh', async () => ran.push('update') > 0, 'update');
  harness = new Harness({ phases: registry });
  harness.ask({ a: 1 });
  await harness.reconcile();
  expect(harness.condition('Migrate')).toBe('True Complete');
  expect(harness.status.created).toBe(true);
  harness.restart();
  await harness.reconcile();
  expect(ran).toEqual(['create', 'update']);
  expect(harness.condition('Migrate')).toBe('absent');
  expect(harness.condition('Refresh')).toBe('True Complete');
});

test('a message alone is written at most once a minute', async () => {
  let message = 'one';
  withPhase(async () => ({ proceed: false, message }), withCustomRequeueResult({ requeueAfterMs: 300_000 }));
  await harness.reconcile();
  harness.takeWrites();
  message = 'two';
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 60_000 });
  expect(harness.takeWrites()).toEqual([]);
  expect(harness.message('Own')).toBe('one');
  await harness.environment.advance(60_000);
  await harness.reconcile();
  expect(harness.takeWrites()).toEqual(['status']);
  expect(harness.message('Own')).toBe('two');
});

test('the transition time moves with the status only, in whole seconds', async () => {
  let reason = 'One';
  withPhase(async () => (reason === '' ? true : { proceed: false, reason }));
  await harness.reconcile();
  const at = (): string | undefined => harness.status.conditions.find(({ type }) => type === 'Own')?.lastTransitionTime;
  const first = at();
  expect(first).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  await harness.environment.advance(120_000);
  reason = 'Two';
  await harness.reconcile();
  expect([harness.condition('Own'), at()]).toEqual(['False Two', first]);
  reason = '';
  await harness.reconcile();
  expect(at()).not.toBe(first);
});

test('what changes and comes back within one reconcile is no transition, and no write', async () => {
  const turns: HandlerFunc = async (reconciler, request) => {
    for (const status of ['False', 'True'] as const) request.setCondition({ type: 'Certified', status, reason: 'Looked', message: '' });
    for (const child of await request.resources())
      for (const ready of [false, true]) updateResourceConditions(reconciler, request, child, { ready, reason: 'Current', message: '' });
    return true;
  };
  withPhase(turns);
  await harness.settle();
  harness.takeWrites();
  await harness.environment.advance(5_000);
  await harness.reconcile();
  expect(harness.takeWrites()).toEqual([]);
});

test('a long message is cut', async () => {
  withPhase(async () => ({ proceed: false, message: 'x'.repeat(40_000) }));
  await harness.reconcile();
  expect(harness.message('Own')).toHaveLength(32_768);
});

test.each([
  ['would be cut within a character', `${'x'.repeat(32_767)}🌍`, 'x'.repeat(32_767)],
  ['holds half of a character', 'half \ud83c of it', 'half \ufffd of it'],
])('a message that %s is text all the same', async (_what, message, told) => {
  withPhase(async () => ({ proceed: false, message }));
  await harness.reconcile();
  expect(harness.message('Own')).toBe(told);
  expect(harness.message('Ready')).toBe(told);
});

test('paused: create and update stop, with a condition; a deletion goes on', async () => {
  withPhase(async () => true);
  await harness.reconcile();
  harness.port.user(harness.view.key, { annotations: { [pausedAnnotation]: 'true' } });
  harness.ask({ a: 1, b: 2 });
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(harness.present).toEqual(['a']);
  expect(harness.condition('Paused')).toBe('True Paused');
  expect(harness.status.observedGeneration).toBe(1);
  harness.port.user(harness.view.key, { annotations: {} });
  await harness.reconcile();
  expect(harness.condition('Paused')).toBe('absent');
  expect(harness.present).toEqual(['a', 'b']);
});

test('a paused workload is deleted all the same', async () => {
  harness = new Harness();
  harness.ask({ a: 1 });
  await harness.settle();
  harness.port.user(harness.view.key, { annotations: { [pausedAnnotation]: 'true' }, deleting: true });
  await harness.settle();
  expect(harness.present).toEqual([]);
  expect(harness.view.finalizers).toEqual([]);
});

test('a status that another wrote meanwhile is read again and written', async () => {
  let intruded = 0;
  withPhase(async () => true);
  await harness.reconcile();
  harness.ask({ a: 2 });
  harness.port.before = (write) => {
    if (write === 'status' && intruded++ === 0) harness.port.intrude(harness.view.key, (status) => ({ ...status, extra: { theirs: 1 } }));
  };
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(intruded).toBe(2);
  expect(harness.status.observedGeneration).toBe(2);
});

test('a status of an older generation is dropped after a conflict, and computed again', async () => {
  let intruded = false;
  withPhase(async () => true);
  await harness.reconcile();
  harness.ask({ a: 2 });
  harness.port.before = (write) => {
    if (write !== 'status' || intruded) return;
    intruded = true;
    harness.ask({ a: 3 });
    harness.port.intrude(harness.view.key, (status) => ({ ...status, extra: { theirs: 1 } }));
  };
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 0 });
  expect(harness.status.observedGeneration).toBe(1);
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
  expect(harness.status.observedGeneration).toBe(3);
});

test('a status conflict is given up after three times, as a failure', async () => {
  withPhase(async () => true);
  await harness.reconcile();
  harness.ask({ a: 2 });
  let tries = 0;
  harness.port.before = (write) => {
    if (write !== 'status') return;
    tries++;
    throw conflict();
  };
  expect(await harness.reconcile()).toMatchObject({ kind: 'failure' });
  expect(tries).toBe(4);
});

test('a workload that is gone when its status is to be written is done with', async () => {
  withPhase(async () => true);
  await harness.reconcile();
  harness.ask({ a: 2 });
  harness.port.before = (write) => {
    if (write === 'status') throw notFound({ namespace: 'default', type: 'Apps.example.dev', id: 'app' });
  };
  expect(await harness.reconcile()).toEqual({ kind: 'none' });
});

test('the phase’s own error stays first when the status cannot be written either', async () => {
  let broken = false;
  withPhase(async () => {
    if (broken) throw new Error('the phase');
    return true;
  });
  await harness.reconcile();
  broken = true;
  harness.port.before = (write) => {
    if (write === 'status') throw new Error('the status');
  };
  const result = await harness.reconcile();
  expect(result).toMatchObject({ kind: 'failure', error: { errors: [{ message: 'the phase' }, { message: 'the status' }] } });
});

test('getResources that hangs ends after its deadline', async () => {
  harness = new Harness({ getResources: () => new Promise(() => {}), deadlineMs: 2000 });
  harness.ask({});
  const result = harness.reconcile();
  await harness.environment.advance(2000);
  expect(await result).toMatchObject({ kind: 'failure' });
  expect(harness.message('Create-Resources')).toMatch(/getResources.*2000|2000.*getResources/);
});

test('getResources is asked once a reconcile, mutate once a child', async () => {
  const asked: string[] = [];
  harness = new Harness({
    getResources: ({ spec }) => {
      asked.push('getResources');
      return spec.boxes.map(({ name, size }) => ({
        ref: { group: 'example.dev', kind: 'Boxes', version: '', namespace: 'default', name },
        labels: {},
        annotations: {},
        body: { size },
      }));
    },
    mutate: (child) => {
      asked.push(`mutate ${child.ref.name}`);
      return child.ref.name === 'b' ? [] : [child];
    },
  });
  harness.ask({ a: 1, b: 2, c: 3 });
  await harness.reconcile();
  expect(asked).toEqual(['getResources', 'mutate a', 'mutate b', 'mutate c']);
  expect(harness.present).toEqual(['a', 'c']);
});

test('registrations that do not fit are refused by name', () => {
  harness = new Harness();
  const registry = createRegistry().register('One', async () => true, 'create');
  const phase: HandlerFunc = async () => true;
  expect(() => registry.register('One', phase, 'create')).toThrow(/One.*twice for create/s);
  expect(() => registry.register('One', phase, 'update')).not.toThrow();
  expect(() => registry.register('Two', phase, 'remove' as never)).toThrow(/unknown lifecycle event remove/);
  for (const name of ['Ready', 'Reconciling', 'Stalled', 'Paused'])
    expect(() => registry.register(name, phase, 'create')).toThrow(/conditions of the engine/);
  expect(registry.phases('create').map(({ name }) => name)).toEqual(['One']);
});

describe('what JavaScript lets an author do', () => {
  test.each([
    [
      'nothing',
      async () => undefined as never,
      /the phase Own answered undefined; expected true, false, or \{ proceed, reason, message \}/,
    ],
    ['an object of another sort', async () => ({ ready: true }) as never, /the phase Own answered an object without proceed/],
  ])('a phase that answers %s is Stalled and says so', async (_what, handler, message) => {
    withPhase(handler);
    expect(await harness.reconcile()).toEqual({ kind: 'none' });
    expect(harness.condition('Own')).toBe('False Failed');
    expect(harness.message('Stalled')).toMatch(message);
  });

  test('checkReady too; a reason and a message that are no text are made some', async () => {
    harness = new Harness({ checkReady: () => undefined as never });
    harness.ask({ a: 1 });
    await harness.settle();
    expect(harness.message('Stalled')).toMatch(/checkReady answered undefined; expected true, false, or \{ ready, reason, message \}/);
    withPhase(async () => ({ proceed: false, reason: 7, message: null }) as never);
    await harness.reconcile();
    expect(harness.condition('Own')).toBe('False Unknown');
    expect(harness.message('Own')).toBe('');
  });
});
