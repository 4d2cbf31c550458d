import { afterEach, expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import type { Pointer } from '../../resource/index.ts';
import { makeResource, SteadystateError } from '../../resource/index.ts';
import type { CoreState, State } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';
import { manualEnvironment } from '../../testing/index.ts';
import type { EventSpec } from './event-log.ts';
import { eventDefinition } from './event-log.ts';
import { releaseFinalizer } from './release-finalizer.ts';

const environment = manualEnvironment();
const core = memoryState({ environment });
const state = wrapCore(core, { environment });
const pointer: Pointer = { namespace: 'far', type: 'Things.example.dev', id: 'a' };

async function held(finalizers: readonly string[], owner = ''): Promise<string> {
  const resource = makeResource({ metadata: { ...pointer, finalizers }, spec: {} });
  const { metadata } = await state.create(resource, { owner });
  await state.teardown(pointer, { owner });
  return metadata.uid;
}

async function records(of: State = state): Promise<readonly EventSpec[]> {
  return (await of.list(eventDefinition.kind('far'))).items.map(({ spec }) => spec);
}

afterEach(async () => {
  const present = await state.get(pointer).catch(() => undefined);
  if (present !== undefined) {
    await state.removeFinalizer(pointer, ...present.metadata.finalizers);
    await state.destroy(pointer, { owner: present.metadata.owner });
  }
  for (const item of (await state.list(eventDefinition.kind('far'))).items) await state.destroy(item.metadata, { owner: 'audit' });
});

/** A store in which the update of the resource ends as the test says; calls are counted. */
function whereUpdates(update: (real: CoreState['update']) => CoreState['update']): {
  readonly state: State;
  readonly updates: () => number;
} {
  let updates = 0;
  const real = core.update.bind(core);
  const faulty = update(real);
  const bent = new Proxy(core, {
    get(target, name) {
      if (name !== 'update') {
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      }
      return (...args: Parameters<CoreState['update']>) => {
        if (args[0].metadata.type !== pointer.type) return real(...args);
        updates++;
        return faulty(...args);
      };
    },
  });
  return { state: wrapCore(bent as CoreState, { environment }), updates: () => updates };
}

test('who took what from which incarnation is on record before and after, and on the resource', async () => {
  const uid = await held(['gone', 'other'], 'somebody');
  const { version, created } = (await state.get(pointer)).metadata;
  const heldBy = `somebody since ${created}`;
  const released = await releaseFinalizer(state, environment, pointer, {
    finalizer: 'gone',
    by: 'ann on mars',
    holder: 'a program of 2019',
  });
  expect(released.resource?.metadata).toMatchObject({ finalizers: ['other'], phase: 'tearingDown', owner: 'somebody' });
  expect(released.resource?.metadata.annotations['steadystate.dev/released-finalizers']).toMatch(/^gone by ann on mars at 2026-/);
  expect(released.record.metadata).toMatchObject({ namespace: 'far', owner: 'audit', id: expect.stringMatching(/^a\./) });
  expect(await records()).toEqual([
    {
      type: 'Warning',
      reason: 'FinalizerReleased',
      note: `finalizer gone of incarnation ${uid} was released by ann on mars (held by ${heldBy}; a program of 2019)`,
      regarding: pointer,
      count: 1,
      firstSeen: expect.stringMatching(/^2026-/),
      lastSeen: expect.stringMatching(/^2026-/),
      release: {
        finalizer: 'gone',
        by: 'ann on mars',
        holder: `${heldBy}; a program of 2019`,
        uid,
        version,
        phase: 'tearingDown',
        owner: 'somebody',
        finalizers: ['gone', 'other'],
        outcome: 'released',
      },
    },
  ]);
});

test('a name of any length is recorded', async () => {
  await held(['gone']);
  const { record } = await releaseFinalizer(state, environment, pointer, { finalizer: 'gone', by: `${'x'.repeat(254)}🌍🌍` });
  expect(record.spec.release?.by).toBe(`${'x'.repeat(254)}…`);
});

test('what is not there, or is another incarnation, is refused before anything is written', async () => {
  const uid = await held(['gone']);
  const ask = (request: Partial<Parameters<typeof releaseFinalizer>[3]>) =>
    releaseFinalizer(state, environment, pointer, { finalizer: 'gone', by: 'ann', ...request });
  await expect(ask({ finalizer: 'none' })).rejects.toMatchObject({ code: 'NotFound', message: expect.stringContaining('it has gone') });
  await expect(ask({ uid: '999' })).rejects.toMatchObject({ code: 'Conflict', reason: 'incarnation' });
  await expect(releaseFinalizer(state, environment, { ...pointer, id: 'none' }, { finalizer: 'gone', by: 'ann' })).rejects.toMatchObject({
    code: 'NotFound',
  });
  expect(await records()).toEqual([]);
  await ask({ uid });
});

test('a rival write is looked at anew', async () => {
  await held(['gone', 'other']);
  let rivals = 0;
  const busy = whereUpdates((real) => async (resource, options) => {
    if (rivals++ === 0) await state.removeFinalizer(pointer, 'other');
    return real(resource, options);
  });
  expect(
    (await releaseFinalizer(busy.state, environment, pointer, { finalizer: 'gone', by: 'ann' })).resource?.metadata.finalizers,
  ).toEqual([]);
  expect(busy.updates()).toBe(2);
});

test('a write whose answer is lost is looked up and sent once: it happened, it did not, it went', async () => {
  const lost = new SteadystateError('Ambiguous', 'the connection broke');
  await held(['gone']);
  const applied = whereUpdates((real) => async (resource, options) => {
    await real(resource, options);
    throw lost;
  });
  expect(
    (await releaseFinalizer(applied.state, environment, pointer, { finalizer: 'gone', by: 'ann' })).resource?.metadata.finalizers,
  ).toEqual([]);
  expect(applied.updates()).toBe(1);
  expect((await records()).map(({ reason }) => reason)).toEqual(['FinalizerReleased']);
  await state.destroy(pointer);

  await held(['gone']);
  const dropped = whereUpdates(() => async () => {
    throw lost;
  });
  await expect(releaseFinalizer(dropped.state, environment, pointer, { finalizer: 'gone', by: 'ann' })).rejects.toBe(lost);
  expect(dropped.updates()).toBe(1);
  expect((await records()).map(({ reason, release }) => [reason, release?.outcome]).sort()).toEqual([
    ['FinalizerReleaseFailed', 'unknown'],
    ['FinalizerReleased', 'released'],
  ]);

  const went = whereUpdates((real) => async (resource, options) => {
    await real(resource, options);
    await state.destroy(pointer);
    throw lost;
  });
  expect((await releaseFinalizer(went.state, environment, pointer, { finalizer: 'gone', by: 'ann' })).resource).toBeUndefined();
});

test('a failure is on record; a program that dies in between leaves a record that it was begun', async () => {
  const uid = await held(['gone']);
  const heldBy = `somebody since ${(await state.get(pointer)).metadata.created}`;
  const refused = whereUpdates(() => async () => {
    throw new SteadystateError('Forbidden', 'not for you');
  });
  await expect(releaseFinalizer(refused.state, environment, pointer, { finalizer: 'gone', by: 'ann' })).rejects.toThrow('not for you');
  expect(await records()).toMatchObject([
    {
      reason: 'FinalizerReleaseFailed',
      note: expect.stringMatching(/was not released by ann .*: not for you$/),
      release: { outcome: 'failed' },
    },
  ]);
  const dying = whereUpdates(() => () => new Promise(() => {}));
  void releaseFinalizer(dying.state, environment, pointer, { finalizer: 'gone', by: 'bob' });
  await environment.settle();
  expect((await records()).filter(({ reason }) => reason === 'FinalizerReleasing')).toMatchObject([
    { note: `finalizer gone of incarnation ${uid} is being released by bob (held by ${heldBy})`, release: { outcome: 'begun' } },
  ]);
});

test('names from outside are shown on one line, and cut', async () => {
  await held(['gone']);
  const by = `eve\u001b[2J\n${'x'.repeat(1000)}`;
  const { record } = await releaseFinalizer(state, environment, pointer, { finalizer: 'gone', by });
  expect(record.spec.note).toMatch(/by eve\\x1b\[2J\\nx+… \(held/);
  expect(record.spec.note.length).toBeLessThan(400);
});
