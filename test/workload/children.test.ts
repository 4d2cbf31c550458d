import { afterEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/environment/index.ts';
import { SteadystateError } from '../../src/resource/index.ts';
import type { ChildOptions, Desired } from '../../src/workload/index.ts';
import {
  allowEmptyAnnotation,
  orphanFinalizer,
  parentAnnotation,
  parentIdLabel,
  plan,
  reconcileAtAnnotation,
} from '../../src/workload/index.ts';
import { app, boxesOf, boxRef, Harness } from './harness.ts';

let harness: Harness;

afterEach(() => expect(harness.environment.open.counts()).toEqual({}));

function entryOf(name: string): unknown {
  return harness.status.children.find((entry) => entry.name === name);
}

describe('applying', () => {
  test('finalizer, then the record of all that is to be, then the children, then one status', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 2 });
    const recorded: unknown[] = [];
    harness.port.before = (write) => {
      if (write === 'apply Boxes/a') recorded.push(...harness.status.children.map(({ name, state, uid }) => [name, state, uid]));
    };
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual(['add finalizer', 'status', 'create Boxes/a', 'create Boxes/b', 'status']);
    expect(recorded).toEqual([
      ['a', 'intended', ''],
      ['b', 'intended', ''],
    ]);
    expect(entryOf('a')).toMatchObject({ state: 'applied', uid: harness.port.child(boxRef('a'))?.uid, order: 0, ready: true });
    expect(harness.port.child(boxRef('a'))?.labels[parentIdLabel]).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(JSON.parse(harness.port.child(boxRef('a'))?.annotations[parentAnnotation] ?? '')).toEqual({ ...app, uid: harness.view.uid });
  });

  test('a steady workload is not written, by the next process neither', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 2 });
    await harness.settle();
    harness.takeWrites();
    await harness.reconcile();
    harness.restart();
    await harness.environment.advance(3_600_000);
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual([]);
  });

  test('drift is put right: spec, labels, annotations; with one event that says so', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    const live = harness.port.child(boxRef('a'));
    for (const change of [
      { body: { size: 9 } },
      { labels: { ...live?.labels, more: '1' } },
      { annotations: { ...live?.annotations, more: '1' } },
    ]) {
      harness.port.events.length = 0;
      harness.port.change(boxRef('a'), change);
      await harness.settle();
      expect(harness.port.child(boxRef('a'))).toMatchObject({ body: { size: 1 }, labels: live?.labels, annotations: live?.annotations });
      expect(harness.port.events.map(({ reason }) => reason)).toEqual(['Updated']);
    }
    harness.port.destroy(boxRef('a'));
    await harness.settle();
    expect(harness.present).toEqual(['a']);
  });

  test('every child is attempted; all errors together', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 2, c: 3 }, { after: [] });
    harness.port.before = (write) => {
      if (write === 'apply Boxes/a') throw new SteadystateError('Forbidden', 'a is forbidden');
      if (write === 'apply Boxes/b') throw new SteadystateError('Unavailable', 'b is away');
    };
    const result = await harness.reconcile();
    expect(result).toMatchObject({ kind: 'failure', error: { message: 'a is forbidden; b is away' } });
    expect(harness.condition('Create-Resources')).toBe('False Failed');
    expect(entryOf('a')).toMatchObject({ ready: false, reason: 'Forbidden', message: 'a is forbidden' });
    expect(harness.present).toEqual(['c']);
  });

  test('a child that is being deleted is waited for, not applied', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.port.change(boxRef('a'), { deleting: true, finalizers: ['x'] });
    harness.ask({ a: 2 });
    harness.takeWrites();
    expect((await harness.reconcile()).kind).toBe('requeue');
    expect(harness.takeWrites()).toEqual(['status']);
    expect(harness.condition('Ready')).toBe('False Pending');
    expect(harness.message('Ready')).toContain('finalizers: x');
    harness.port.destroy(boxRef('a'));
    await harness.settle();
    expect(harness.port.child(boxRef('a'))?.body).toEqual({ size: 2 });
    expect(harness.condition('Ready')).toBe('True Ready');
  });

  test('a kind that is not served yet is pending', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    harness.port.before = (write) => {
      if (write.startsWith('apply')) throw new SteadystateError('Unsupported', 'no such kind');
    };
    expect((await harness.reconcile()).kind).toBe('requeue');
    expect(harness.condition('Create-Resources')).toBe('False Pending');
  });

  test('a child that appeared meanwhile is read again, and adopted by the rules', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    let raced = false;
    harness.port.before = (write) => {
      if (write !== 'apply Boxes/a' || raced) return;
      raced = true;
      harness.port.put({ ref: boxRef('a'), body: { size: 1 }, owner: 'somebody' });
    };
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure', error: { message: /owned by somebody/ } });
    expect(harness.port.child(boxRef('a'))?.owner).toBe('somebody');
  });

  test('two children of one identity, and unknown or circular dependencies, are terminal', async () => {
    const cases: readonly (readonly [readonly { name: string; size: number; after?: string[] }[], RegExp])[] = [
      [
        [
          { name: 'a', size: 1 },
          { name: 'a', size: 2 },
        ],
        /two children/,
      ],
      [[{ name: 'a', size: 1, after: ['z'] }], /depends on z/],
      [
        [
          { name: 'a', size: 1, after: ['b'] },
          { name: 'b', size: 1, after: ['a'] },
        ],
        /circle: a → b → a/,
      ],
    ];
    for (const [boxes, message] of cases) {
      harness = new Harness();
      harness.port.user(app, { spec: { boxes } });
      expect(await harness.reconcile()).toEqual({ kind: 'none' });
      expect(harness.condition('Stalled')).toMatch(/^True/);
      expect(harness.message('Stalled')).toMatch(message);
      expect(harness.present).toEqual([]);
    }
  });

  test('a run that is asked for happens without a change', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.port.user(app, { annotations: { [reconcileAtAnnotation]: 'now' } });
    expect(await harness.settle()).toEqual({ kind: 'none' });
    expect(harness.condition('Ready')).toBe('True Ready');
  });
});

describe('order', () => {
  const notReady = { conditions: [{ type: 'Reconciling', status: 'True', reason: 'Busy', message: '' }] };

  test('one that waits is held until the one before is ready; repairs are not', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    harness.port.after = (write) => {
      if (write === 'create Boxes/a') harness.port.change(boxRef('a'), { status: notReady });
    };
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.present).toEqual(['a']);
    expect(harness.condition('Ready')).toBe('False WaitingForChild');
    harness.port.change(boxRef('a'), { status: undefined });
    await harness.settle();
    expect(harness.present).toEqual(['a', 'b']);
    // Ready once; now a is busy again and b is lost: it is put back at once, but not changed.
    harness.port.change(boxRef('a'), { status: notReady });
    harness.port.destroy(boxRef('b'));
    await harness.reconcile();
    expect(harness.present).toEqual(['a', 'b']);
    harness.ask({ a: 1, b: 2 });
    await harness.reconcile();
    expect(harness.port.child(boxRef('b'))?.body).toEqual({ size: 1 });
  });

  test('a child that failed is told as such', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    harness.port.after = (write) => {
      if (write === 'create Boxes/a')
        harness.port.change(boxRef('a'), {
          status: { conditions: [{ type: 'Stalled', status: 'True', reason: 'Broken', message: 'no' }] },
        });
    };
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.condition('Create-Resources')).toBe('False ChildFailed');
    expect(harness.message('Ready')).toContain('Broken');
  });

  test('by dependsOn up to eight at once, each after what it depends on', async () => {
    harness = new Harness();
    const boxes = [
      { name: 'last', size: 1, after: Array.from({ length: 20 }, (_, index) => `b${index}`) },
      ...Array.from({ length: 20 }, (_, index) => ({ name: `b${index}`, size: 1, after: [] as string[] })),
    ];
    harness.port.user(app, { spec: { boxes } });
    let running = 0;
    let most = 0;
    harness.port.before = async (write) => {
      if (!write.startsWith('apply')) return;
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => setImmediate(resolve));
      running--;
    };
    await harness.reconcile();
    expect(most).toBe(8);
    expect(harness.takeWrites().at(-2)).toBe('create Boxes/last');
    expect(entryOf('last')).toMatchObject({ order: 1 });
  });
});

describe('adoption', () => {
  const cases: readonly (readonly [ChildOptions['adopt'], string, string])[] = [
    [undefined, '', 'adopted'],
    [undefined, 'somebody', 'refused'],
    ['never', '', 'refused'],
    ['always', 'somebody', 'adopted'],
  ];
  test.each(cases)('%s, owned by "%s": %s', async (adopt, owner, expected) => {
    harness = new Harness();
    harness.port.put({ ref: boxRef('a'), body: { size: 7 }, owner });
    harness.ask({ a: 1 }, { options: { ...(adopt && { adopt }) } });
    const result = await harness.reconcile();
    if (expected === 'adopted') {
      expect(harness.port.child(boxRef('a'))).toMatchObject({ owner: 'operator', body: { size: 1 } });
      expect(harness.port.events.map(({ reason }) => reason)).toContain('Adopted');
    } else {
      expect(result).toMatchObject({ kind: 'failure' });
      expect(harness.port.child(boxRef('a'))).toMatchObject({ owner, body: { size: 7 } });
    }
  });

  test('two parents that claim one child: a failure that names the holder, and no fight', async () => {
    harness = new Harness();
    const other = { ...app, name: 'other' };
    harness.port.user(other, { spec: { boxes: [{ name: 'a', size: 5 }] } });
    const signal = new AbortController().signal;
    await harness.engine.reconcile(other, harness.port, silentLogger, signal);
    harness.ask({ a: 1 });
    harness.takeWrites();
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure', error: { message: /child of Apps default\/other/ } });
    await harness.reconcile();
    await harness.engine.reconcile(other, harness.port, silentLogger, signal);
    expect(harness.takeWrites().filter((write) => write.includes('Boxes'))).toEqual([]);
    // The loser goes, and does not take the child with it.
    harness.port.user(app, { deleting: true });
    await harness.settle();
    expect(harness.present).toEqual(['a']);
  });

  test('an earlier uid of the same parent, as after an import, is no other parent', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.port.workloadsByKey.clear();
    harness.ask({ a: 2 });
    await harness.settle();
    expect(harness.port.child(boxRef('a'))).toMatchObject({ body: { size: 2 } });
    expect(harness.condition('Ready')).toBe('True Ready');
  });
});

describe('pruning', () => {
  test('what is no longer asked for goes, in reverse order, wave by wave', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1, c: 1 });
    await harness.settle();
    harness.port.change(boxRef('c'), { finalizers: ['x'] });
    harness.ask({ a: 1 });
    harness.takeWrites();
    await harness.reconcile();
    expect(harness.takeWrites()).toEqual(['teardown Boxes/c', 'status']);
    expect(harness.condition('Create-Resources')).toBe('False Pruning');
    expect(harness.message('Create-Resources')).toContain('finalizers: x');
    expect(entryOf('c')).toMatchObject({ state: 'deleting' });
    harness.port.change(boxRef('c'), { finalizers: [] });
    await harness.settle();
    expect(harness.takeWrites().filter((write) => write !== 'status')).toEqual(['destroy Boxes/c', 'teardown Boxes/b', 'destroy Boxes/b']);
    expect(harness.status.children.map(({ name }) => name)).toEqual(['a']);
  });

  test('not before all that is desired was applied', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.ask({ a: 2 });
    harness.port.before = (write) => {
      if (write === 'apply Boxes/a') throw new Error('not today');
    };
    await harness.reconcile();
    expect(harness.present).toEqual(['a', 'b']);
  });

  test('getResources that throws prunes nothing', async () => {
    let broken = false;
    harness = new Harness({
      getResources: (request): readonly Desired[] => {
        if (broken) throw new Error('cannot compute');
        return boxesOf(request);
      },
    });
    harness.ask({ a: 1 });
    await harness.settle();
    broken = true;
    harness.ask({});
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure' });
    expect(harness.present).toEqual(['a']);
    expect(harness.status.children).toHaveLength(1);
  });

  test('losing all children is held until it is meant', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.ask({});
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.present).toEqual(['a', 'b']);
    expect(harness.condition('Ready')).toBe('False PruneBlocked');
    expect(harness.port.events.filter(({ reason }) => reason === 'PruneBlocked')).toHaveLength(1);
    harness.port.user(app, { annotations: { [allowEmptyAnnotation]: 'true' } });
    await harness.settle();
    expect(harness.present).toEqual([]);
    expect(harness.condition('Ready')).toBe('True Ready');
  });

  test('a child without our mark is not removed, whatever the inventory says', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.port.change(boxRef('b'), { annotations: {}, labels: {} });
    harness.ask({ a: 1 });
    await harness.settle();
    expect(harness.present).toEqual(['a', 'b']);
    expect(harness.status.children.map(({ name }) => name)).toEqual(['a']);
    expect(harness.port.events.map(({ reason }) => reason)).toContain('PruneBlocked');
  });

  test('orphan: it lives on without our marks', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 }, { options: { onPrune: 'orphan' } });
    await harness.settle();
    harness.ask({ a: 1 }, { options: { onPrune: 'orphan' } });
    await harness.settle();
    expect(harness.port.child(boxRef('b'))).toMatchObject({ owner: '', labels: {}, annotations: {} });
    expect(harness.status.children.map(({ name }) => name)).toEqual(['a']);
  });
});

describe('deletion', () => {
  test('from the highest order down, then the status, then our finalizer, and nothing after it', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.port.change(boxRef('b'), { finalizers: ['x'] });
    harness.port.user(app, { deleting: true });
    harness.takeWrites();
    await harness.reconcile();
    expect(harness.condition('Delete-Resources')).toBe('False WaitingForDeletion');
    expect(harness.message('Delete-Resources')).toContain('finalizers: x');
    expect(harness.present).toEqual(['a', 'b']);
    harness.port.change(boxRef('b'), { finalizers: [] });
    await harness.settle();
    const writes = harness.takeWrites();
    expect(writes.slice(-2)).toEqual(['remove status', 'remove finalizer']);
    expect(writes.filter((write) => write.startsWith('destroy'))).toEqual(['destroy Boxes/b', 'destroy Boxes/a']);
  });

  test('goes by the inventory only: neither spec nor desired state are asked', async () => {
    let asked = 0;
    harness = new Harness({
      getResources: (request) => {
        asked++;
        return boxesOf(request);
      },
    });
    harness.ask({ a: 1 });
    await harness.settle();
    asked = 0;
    harness.port.user(app, { deleting: true, spec: { broken: true } });
    await harness.settle();
    expect([asked, harness.present]).toEqual([0, []]);
  });

  test('without our finalizer nothing is done', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.port.user(app, { deleting: true, finalizers: ['other'] });
    harness.takeWrites();
    expect(await harness.reconcile()).toEqual({ kind: 'none' });
    expect(harness.takeWrites()).toEqual([]);
  });

  test('a conflict at the removal of a child keeps the finalizer', async () => {
    harness = new Harness();
    harness.ask({ a: 1 });
    await harness.settle();
    harness.port.user(app, { deleting: true });
    harness.port.before = (write) => {
      if (write === 'remove Boxes/a') throw new SteadystateError('Conflict', 'changed meanwhile', { reason: 'version' });
    };
    expect(await harness.reconcile()).toMatchObject({ kind: 'failure', quiet: true });
    expect(harness.view.finalizers).toEqual([harness.engine.finalizer]);
  });

  test('children that are to be orphaned live on; so do all with the finalizer orphan', async () => {
    harness = new Harness();
    harness.ask({ a: 1 }, { options: { onDelete: 'orphan' } });
    await harness.settle();
    harness.port.user(app, { deleting: true });
    await harness.settle();
    expect(harness.port.child(boxRef('a'))).toMatchObject({ owner: '', annotations: {} });

    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.port.user(app, { deleting: true, finalizers: [...harness.view.finalizers, orphanFinalizer] });
    await harness.settle();
    expect(harness.present).toEqual(['a', 'b']);
    expect(harness.view.finalizers).toEqual([]);
  });

  test('children are found by their label when the status was lost', async () => {
    harness = new Harness();
    harness.ask({ a: 1, b: 1 });
    await harness.settle();
    harness.port.user(app, { status: undefined, deleting: true });
    harness.restart();
    await harness.settle();
    expect(harness.present).toEqual([]);
    expect(harness.view.finalizers).toEqual([]);
  });
});

describe('a plan', () => {
  test('says what a reconcile does, and writes nothing', async () => {
    harness = new Harness();
    harness.ask({ keep: 1, change: 1, gone: 1 });
    await harness.settle();
    harness.port.put({ ref: boxRef('found'), body: { size: 1 } });
    harness.port.put({ ref: boxRef('theirs'), body: { size: 1 }, owner: 'somebody' });
    harness.ask({ keep: 1, change: 2, found: 1, made: 1, theirs: 1 });
    harness.takeWrites();
    const signal = new AbortController().signal;
    const planned = await plan(harness.engine, harness.view, harness.port, silentLogger, signal);
    expect(harness.takeWrites()).toEqual([]);
    expect(planned.children.map(({ child, action }) => `${action} ${child.name}`)).toEqual([
      'keep keep',
      'update change',
      'adopt found',
      'create made',
      'refuse theirs',
    ]);
    expect(planned.children[1]?.differences).toEqual([{ path: 'spec.size', live: 1, desired: 2 }]);
    expect(planned.prune.map(({ name }) => name)).toEqual(['gone']);
    await harness.reconcile();
    expect(harness.takeWrites().filter((write) => write.includes('Boxes'))).toEqual([
      'update Boxes/change',
      'update Boxes/found',
      'create Boxes/made',
    ]);
  });
});
