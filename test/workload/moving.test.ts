import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineResource, SteadystateError } from '../../src/resource/index.ts';
import {
  createOrUpdate,
  createRegistry,
  createResourcesPhase,
  immutableReason,
  orphanFinalizer,
  parentAnnotation,
  terminalError,
} from '../../src/workload/index.ts';
import { app, boxes, boxRef, Harness } from './harness.ts';

let harness: Harness;
afterEach(() => expect(harness.environment.open.counts()).toEqual({}));

describe('what moves between the look and the write is read again, once, in the same reconcile', () => {
  /** Lets `change` happen just before the first write that it is about. */
  function meanwhile(write: string, change: () => void): void {
    harness.port.before = (line) => {
      if (line !== write) return;
      harness.port.before = () => {};
      change();
    };
  }

  test('it exists by now: the rule of adoption', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    meanwhile('apply Boxes/a', () => void harness.port.put({ ref: boxRef('a'), body: { size: 5 } }));
    expect(await harness.reconcile()).toEqual({ kind: 'none' });
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 1 });
    expect(harness.port.events.map(({ reason }) => reason)).toEqual(['Adopted', 'Ready']);
  });

  test('it is another incarnation, or gone: what is there now counts', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.ask({ a: 2 });
    meanwhile('apply Boxes/a', () => {
      harness.port.destroy(boxRef('a'));
      harness.port.put({ ref: boxRef('a'), body: { size: 5 }, owner: 'rival' });
    });
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure', error: { message: expect.stringContaining('owned by rival') } });
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 5 });
    harness.port.destroy(boxRef('a'));
    await harness.settle();
    harness.ask({ a: 3 });
    meanwhile('apply Boxes/a', () => harness.port.destroy(boxRef('a')));
    expect(await harness.reconcile()).toEqual({ kind: 'none' });
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 3 });
  });

  test('it is being deleted by now: not applied', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.ask({ a: 2 });
    meanwhile('apply Boxes/a', () => harness.port.change(boxRef('a'), { deleting: true, finalizers: ['busy'] }));
    expect(await harness.reconcile()).toMatchObject({ kind: 'requeue' });
    expect(harness.message('Ready')).toBe('a: is being deleted; finalizers: busy');
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 1 });
  });
});

describe('writes of the status', () => {
  test('none at the end when the write before the first apply said all', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    harness.port.before = (line) => {
      if (line.startsWith('apply')) throw new SteadystateError('Conflict', 'changed', { reason: 'version' });
    };
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual(['add finalizer', 'status']);
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual([]);
  });

  test.each([
    ['conflict', new SteadystateError('Conflict', 'changed', { reason: 'version' })],
    ['passing fault', new SteadystateError('Unavailable', 'nobody answers')],
  ])('after a %s the conditions stay, and do not pass for those of the new spec', async (_what, error) => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    const { observedVersion, observedGeneration, conditions } = harness.status;
    harness.ask({ a: 2, b: 1 });
    harness.port.before = (line) => {
      if (line === 'apply Boxes/b') throw error;
    };
    await harness.reconcile();
    expect(harness.status).toMatchObject({ observedVersion, observedGeneration, conditions });
    expect(harness.status.children.map(({ name, state }) => `${name} ${state}`)).toEqual(['a applied', 'b intended']);
    harness.port.before = () => {};
    await harness.reconcile();
    expect(harness.status).toMatchObject({ observedVersion: harness.view.version, observedGeneration: 2 });
  });
});

/** A port like that of a cluster: a collector takes children with their parent where it can. */
function onCluster(more?: ConstructorParameters<typeof Harness>[0]): Harness {
  harness = new Harness(more);
  Object.assign(harness.port.caps, { garbageCollector: true, ownerReferences: true, namespaces: true });
  return harness;
}

describe('our finalizer, where there is a collector', () => {
  test('is not needed for children that it takes', async () => {
    onCluster().ask({ a: 1 });
    await harness.settle();
    expect(harness.view.finalizers).toEqual([]);
  });

  test.each([
    ['an order of deletion', { deletionOrder: 3 }],
    ['a child that must stay', { onDelete: 'orphan' as const }],
  ])('is needed for %s', async (_what, options) => {
    onCluster().ask({ a: 1 }, { options });
    await harness.reconcile();
    expect(harness.port.writes[0]).toBe('add finalizer');
  });

  test('is needed for a child in another namespace, and while one is recorded', async () => {
    let namespace = 'elsewhere';
    onCluster({
      getResources: () => [{ ref: { ...boxRef('a'), namespace }, labels: {}, annotations: {}, body: { size: 1 } }],
    }).ask({});
    await harness.reconcile();
    expect(harness.port.writes[0]).toBe('add finalizer');
    namespace = 'default';
    harness.port.user(app, { finalizers: [] });
    harness.takeWrites();
    await harness.reconcile();
    expect(harness.takeWrites()).toContain('add finalizer');
  });

  test('is put there when the children cannot be computed: one too many does no harm', async () => {
    onCluster({
      getResources: () => {
        throw new Error('no idea');
      },
    }).ask({});
    await harness.reconcile();
    expect(harness.view.finalizers).toHaveLength(1);
  });

  test('the wish to orphan is on record before anything else, for the collector takes its finalizer away', async () => {
    onCluster().ask({ a: 1 }, { options: { deletionOrder: 1 } });
    await harness.settle();
    harness.port.user(app, { deleting: true, finalizers: [...harness.view.finalizers, orphanFinalizer] });
    harness.takeWrites();
    harness.port.before = (line) => {
      if (line.startsWith('release')) throw new SteadystateError('Unavailable', 'nobody answers');
    };
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual(['status']);
    harness.port.before = () => {};
    harness.port.user(app, { finalizers: harness.view.finalizers.filter((name) => name !== orphanFinalizer) });
    await harness.settle();
    expect(harness.port.child(boxRef('a'))).toMatchObject({ deleting: false });
    expect(harness.port.child(boxRef('a'))?.annotations[parentAnnotation]).toBeUndefined();
    expect(harness.view.finalizers).toEqual([]);
  });
});

describe('namespaces of children', () => {
  const elsewhere = { ...boxRef('a'), namespace: 'elsewhere' };
  const inNamespace = (answer: () => Promise<'active' | 'terminating' | 'absent' | 'unknown'>): Harness => {
    onCluster({ getResources: () => [{ ref: elsewhere, labels: {}, annotations: {}, body: { size: 1 } }] }).ask({});
    harness.port.namespaceState = answer as never;
    return harness;
  };

  test.each([
    ['terminating', /is being deleted/],
    ['absent', /does not exist/],
  ] as const)('%s: pending', async (state, message) => {
    await inNamespace(async () => state).reconcile();
    expect(harness.condition('Ready')).toBe('False Pending');
    expect(harness.message('Ready')).toMatch(message);
    expect(harness.port.child(elsewhere)).toBeUndefined();
  });

  test('active, or one that nobody may look at: applied', async () => {
    await inNamespace(async () => {
      throw new SteadystateError('Forbidden', 'no looking at namespaces');
    }).reconcile();
    expect(harness.port.child(elsewhere)).toBeDefined();
  });

  test("the parent's own is not looked at", async () => {
    onCluster().ask({ a: 1 });
    harness.port.namespaceState = async () => {
      throw new Error('looked');
    };
    await harness.reconcile();
    expect(harness.present).toEqual(['a']);
  });
});

test('an entry whose object is a desired child under another kind is an old name of it: renamed, never pruned', async () => {
  let kind = 'OldBoxes';
  harness = new Harness({
    getResources: () => [{ ref: { ...boxRef('a'), kind }, labels: {}, annotations: {}, body: { size: 1 } }],
  });
  harness.ask({});
  await harness.settle();
  const old = harness.port.child({ ...boxRef('a'), kind: 'OldBoxes' });
  // The store serves one object under two kinds, as an API group that moved does.
  kind = 'Boxes';
  harness.port.put({ ...old, ref: boxRef('a'), uid: old?.uid ?? '' } as never);
  harness.takeWrites();
  await harness.settle();
  expect(harness.status.children.map((entry) => `${entry.kind} ${entry.state}`)).toEqual(['Boxes applied']);
  expect(harness.takeWrites().filter((line) => line.startsWith('teardown') || line.startsWith('destroy'))).toEqual([]);
});

test('a kind that is not served any more has no objects: its entries go', async () => {
  harness = new Harness();
  harness.ask({ a: 1 });
  await harness.settle();
  harness.port.reading = (read) => {
    if (read === 'get Boxes/a') throw new SteadystateError('Unsupported', 'Boxes is not served');
  };
  harness.port.user(app, { deleting: true });
  await harness.settle();
  expect(harness.view.finalizers).toEqual([]);
});

test('a workload that is torn down while it gets our finalizer brings nothing up', async () => {
  harness = new Harness();
  harness.ask({ a: 1 });
  harness.port.before = (line) => {
    if (line === 'add finalizer') harness.port.user(app, { deleting: true });
  };
  expect(await harness.reconcile()).toEqual({ kind: 'requeue', afterMs: 0 });
  expect(harness.present).toEqual([]);
  await harness.settle();
  expect(harness.view.finalizers).toEqual([]);
  expect(harness.port.writes.filter((line) => line.startsWith('create'))).toEqual([]);
});

describe('createOrUpdate', () => {
  const withOwnPhase = (first: string): Harness => {
    const registry = createRegistry();
    for (const event of ['create', 'update'] as const)
      registry
        .register(
          'First',
          async (reconciler, request) => {
            const { ready } = await createOrUpdate(reconciler, request, { ref: boxRef(first) });
            return ready;
          },
          event,
        )
        .register('Rest', createResourcesPhase, event);
    return new Harness({ phases: registry });
  };

  test('makes one child ahead of the others, with its marks and on record', async () => {
    harness = withOwnPhase('b');
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    expect(harness.port.writes.filter((line) => line.startsWith('create'))).toEqual(['create Boxes/b', 'create Boxes/a']);
    expect(harness.port.writes.indexOf('status')).toBeLessThan(harness.port.writes.indexOf('create Boxes/b'));
    expect(harness.condition('Ready')).toBe('True Ready');
    expect(harness.port.child(boxRef('b'))?.annotations[parentAnnotation]).toBeDefined();
  });

  test('refuses a child that getResources does not answer', async () => {
    harness = withOwnPhase('z');
    harness.ask({ a: 1 });
    await harness.reconcile();
    expect(harness.condition('Stalled')).toBe('True NotDesired');
    expect(harness.present).toEqual([]);
  });
});

describe('what cannot be changed', () => {
  const refusing = (onImmutable?: 'fail' | 'recreate'): Harness => {
    harness = new Harness();
    const options = onImmutable === undefined ? {} : { options: { onImmutable } };
    harness.ask({ a: 1 }, options);
    harness.port.before = (line) => {
      if (line === 'apply Boxes/a' && harness.port.child(boxRef('a')) !== undefined)
        throw terminalError(immutableReason, 'spec.size: field is immutable');
    };
    return harness;
  };

  test('is Stalled, and the child stays as it is', async () => {
    await refusing().settle();
    harness.ask({ a: 2 });
    expect(await harness.reconcile()).toEqual({ kind: 'none' });
    expect(harness.condition('Stalled')).toBe('True Immutable');
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 1 });
  });

  test('recreate: deleted by uid, waited for, made anew', async () => {
    await refusing('recreate').settle();
    const { uid } = harness.port.child(boxRef('a')) ?? {};
    harness.port.change(boxRef('a'), { finalizers: ['busy'] });
    harness.ask({ a: 2 }, { options: { onImmutable: 'recreate' } });
    await harness.reconcile();
    expect(harness.message('Ready')).toBe('a: is made anew: spec.size: field is immutable');
    await harness.reconcile();
    expect(harness.message('Ready')).toContain('is being deleted');
    // Nobody else ends it where removing takes two steps.
    harness.port.change(boxRef('a'), { finalizers: [] });
    await harness.settle();
    expect(harness.port.child(boxRef('a'))).toMatchObject({ body: { size: 2 } });
    expect(harness.port.child(boxRef('a'))?.uid).not.toBe(uid);
  });

  test('recreate is for that only: what is wrong otherwise keeps its child', async () => {
    await refusing('recreate').settle();
    harness.port.before = (line) => {
      if (line === 'apply Boxes/a') throw new SteadystateError('Invalid', 'spec.size: must be even');
    };
    harness.ask({ a: 3 }, { options: { onImmutable: 'recreate' } });
    await harness.reconcile();
    expect(harness.condition('Stalled')).toBe('True Invalid');
    expect(harness.port.child(boxRef('a'))).toMatchObject({ deleting: false, body: { size: 1 } });
  });
});

test('a Job that completed and went by its time to live is not made again until it is to be another', async () => {
  const ref = { group: 'batch', kind: 'Job', version: 'v1', namespace: 'default', name: 'migrate' };
  let image = 'one';
  harness = new Harness({
    children: [boxes, defineResource({ type: 'Job.batch', spec: z.unknown() })],
    getResources: () => [{ ref, labels: {}, annotations: {}, body: { spec: { image, ttlSecondsAfterFinished: 60 } } }],
  });
  harness.ask({});
  await harness.settle();
  harness.port.change(ref, { status: { conditions: [{ type: 'Complete', status: 'True' }] } });
  await harness.settle();
  harness.port.destroy(ref);
  harness.takeWrites();
  await harness.settle();
  expect(harness.takeWrites()).toEqual([]);
  expect(harness.condition('Ready')).toBe('True Ready');
  image = 'two';
  await harness.settle();
  expect(harness.port.child(ref)?.body).toMatchObject({ spec: { image: 'two' } });
  // One that did not complete is made again.
  harness.port.destroy(ref);
  await harness.settle();
  expect(harness.port.child(ref)).toBeDefined();
});

test('a failure is told once for its reason, however its text changes', async () => {
  let count = 0;
  let fail: () => never = () => {
    throw new Error(`try ${++count}`);
  };
  harness = new Harness({ getResources: () => fail() });
  harness.ask({});
  for (let runs = 0; runs < 3; runs++) await harness.reconcile();
  expect(harness.port.events.map(({ note }) => note)).toEqual(['Create-Resources: try 1']);
  fail = () => {
    throw terminalError('Impossible', 'never');
  };
  for (let runs = 0; runs < 3; runs++) await harness.reconcile();
  expect(harness.port.events.map(({ note }) => note)).toEqual(['Create-Resources: try 1', 'Create-Resources: never']);
});
