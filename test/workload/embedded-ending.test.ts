import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineResource, SteadystateError } from '../../src/resource/index.ts';
import { orphanFinalizer, parentAnnotation, parentIdLabel } from '../../src/workload/index.ts';
import type { AppChild } from './embedded-world.ts';
import { apps, boxes, childrenOf, otherBoxes, World } from './embedded-world.ts';

const owner = 'Apps-reconciler';
const companion = { namespace: 'default', type: 'AppStatuses.example.dev', id: 'app' };
const other = (id: string, more?: AppChild['more']): AppChild => ({ kind: 'otherBoxes', id, ...(more && { more }) });
let world: World;
const start = async (...given: ConstructorParameters<typeof World>): Promise<void> => {
  world = new World(...given);
  await world.start();
};

afterEach(async () => {
  await world[Symbol.asyncDispose]();
  expect(world.environment.open.counts()).toEqual({});
});

describe('a child that can never be', () => {
  const ref = { group: 'other.dev', kind: 'Boxes', version: '', namespace: 'default', name: 'o' };
  const child = { ref, labels: {}, annotations: {}, body: { size: 1 } };
  test.each<readonly [string, unknown, RegExp]>([
    [
      'of a kind that is not declared',
      { ...child, ref: { ...ref, kind: 'Crates' } },
      /Crates\.other\.dev o is of a kind .* name it in children/,
    ],
    ['without a name', { ...child, ref: { ...ref, name: '' } }, /expected 1 to 1024 bytes, found none/],
    ['in no namespace that can be', { ...child, ref: { ...ref, namespace: 'a\nb' } }, /must not hold control characters/],
    ['without an order', { ...child, options: { deletionOrder: Number.NaN } }, /deletionOrder must be a whole number, found NaN/],
    ['that is none', null, /without a ref among the children/],
    ['that is a resource', otherBoxes.create({ id: 'o', spec: { size: 1 } }), /make each with desiredChild/],
  ])('%s is told, and does not keep the workload from its end', async (_what, given, message) => {
    await start({ getResources: () => [child, given] as (typeof child)[] });
    await world.app([]);
    expect(await world.condition('Stalled')).toMatch(message);
    expect(await world.present()).toEqual([]);
    await world.state.teardownAndDestroy(apps.pointer('app'));
    await world.settle();
    expect(await world.find(companion)).toBeUndefined();
  });

  test.each([
    ['getResources', { getResources: () => undefined as never }],
    ['mutate', { getResources: () => [child], mutate: () => null as never }],
  ])('no list from %s is told', async (what, options) => {
    await start(options);
    await world.app([]);
    expect(await world.condition('Stalled')).toMatch(new RegExp(`${what} answered (undefined|null); expected a list of children`));
  });

  test('that somebody wrote into the inventory does not keep the workload from its end', async () => {
    await start();
    await world.app([other('o')]);
    await world.halt();
    await world.state.updateWithConflicts(
      companion,
      (draft) => {
        const { children } = draft.spec as { children: { name: string }[] };
        children.push({ ...children[0], name: 'a\nb' });
      },
      { owner },
    );
    await world.start();
    const gone = world.state.teardownAndDestroy(apps.pointer('app'));
    await world.environment.advance(1_000);
    await gone;
    expect(await world.present()).toEqual([]);
  });
});

describe('a kind of child that an operator makes no more', () => {
  const boxesOnly = { children: [boxes] };
  const retired = { children: [boxes], retiredChildren: [otherBoxes.type] };
  const withoutOthers = async (): Promise<void> => {
    await world.halt();
    await world.app([{ id: 'b' }]);
  };

  test('keeps a workload from its end, which says what helps; the next operator removes what there still is', async () => {
    await start();
    await world.app([other('o'), { id: 'b' }]);
    await world.halt();
    world.appOptions = boxesOnly;
    await world.start();
    const gone = world.state.teardownAndDestroy(apps.pointer('app'));
    await world.environment.advance(1_000);
    expect(await world.condition('Stalled')).toMatch(
      /Boxes\/o was made by an earlier version .* name Boxes\.other\.dev in its retiredChildren/,
    );
    await world.halt();
    world.appOptions = retired;
    await world.start();
    await world.environment.advance(1_000);
    await gone;
    expect(await world.present()).toEqual([]);
  });

  test('is pruned, waited for while somebody holds it, and found after the workload is gone', async () => {
    await start();
    await world.app([other('o'), { id: 'b' }]);
    await world.ready('b');
    await world.state.addFinalizer(otherBoxes.pointer('o'), 'busy');
    await withoutOthers();
    world.appOptions = retired;
    await world.start();
    expect(await world.condition('Ready')).toMatch(/waiting for Boxes\/o \(finalizers: busy\)/);
    // Its end wakes the workload.
    await world.state.removeFinalizer(otherBoxes.pointer('o'), 'busy');
    await world.settle();
    expect(await world.present()).toEqual(['b']);
    expect(await world.condition('Ready')).toMatch(/^True/);
    await world.halt();
    world.appOptions = {};
    await world.start();
    await world.app([other('p')]);
    await world.halt();
    await forceAway();
    world.appOptions = retired;
    await world.start();
    expect(await world.present()).toEqual([]);
  });

  test('is not made, and cannot be among the children as well', async () => {
    await start(retired);
    await world.app([other('o')]);
    expect(await world.condition('Stalled')).toMatch(/of a kind that this workload does not declare/);
    for (const type of [boxes.type, apps.type, 'boxes'])
      expect(() => new World({ children: [boxes], retiredChildren: [type] }).controller()).toThrow(/InvalidWorkload: .*/);
  });
});

/** As `release-finalizer` does, and then the store. */
async function forceAway(): Promise<void> {
  const { metadata } = await world.state.get(apps.pointer('app'));
  await world.state.removeFinalizer(apps.pointer('app'), ...metadata.finalizers);
  if ((await world.find(apps.pointer('app'))) !== undefined) await world.state.destroy(apps.pointer('app'));
}

describe('children and companion of a workload that is gone', () => {
  test('are removed when it was taken away by force', async () => {
    await start();
    await world.app([other('o'), other('p')]);
    await forceAway();
    await world.settle();
    expect(await world.present()).toEqual([]);
    expect(await world.find(companion)).toBeUndefined();
  });

  test('are removed at the start, when it went while nobody looked; a create can land late', async () => {
    await start();
    await world.app([other('o')]);
    await world.halt();
    const { spec, metadata } = await world.state.get(otherBoxes.pointer('o'));
    await forceAway();
    await world.state.create(
      { metadata: { ...metadata, id: 'late', finalizers: [], labels: metadata.labels, annotations: metadata.annotations }, spec },
      { owner },
    );
    await world.start();
    expect(await world.present()).toEqual([]);
    expect(await world.find(companion)).toBeUndefined();
  });

  test('one that is held by a finalizer goes when that does; the companion last', async () => {
    await start();
    await world.app([other('o')]);
    await world.state.addFinalizer(otherBoxes.pointer('o'), 'busy');
    await forceAway();
    await world.settle();
    expect((await world.state.get(otherBoxes.pointer('o'))).metadata.phase).toBe('tearingDown');
    expect(await world.find(companion)).toBeDefined();
    await world.state.removeFinalizer(otherBoxes.pointer('o'), 'busy');
    await world.settle();
    expect(await world.present()).toEqual([]);
    expect(await world.find(companion)).toBeUndefined();
  });

  test('one that was to be orphaned lives on, without marks', async () => {
    await start();
    await world.app([other('o', { options: { onDelete: 'orphan' } })]);
    await forceAway();
    await world.settle();
    const { metadata } = await world.state.get(otherBoxes.pointer('o'));
    expect(metadata.annotations[parentAnnotation]).toBeUndefined();
    expect(metadata.labels[parentIdLabel]).toBeUndefined();
  });

  test('what bears no right mark is left alone', async () => {
    await start();
    await world.app([other('o')]);
    const { metadata } = await world.state.get(otherBoxes.pointer('o'));
    // The label of a child, but the mark of another parent, and the other way round.
    await world.state.create(otherBoxes.create({ id: 'label', spec: { size: 1 }, labels: metadata.labels, annotations: {} }));
    await world.state.create(otherBoxes.create({ id: 'mark', spec: { size: 1 }, annotations: metadata.annotations }));
    await forceAway();
    await world.settle();
    expect(await world.present()).toEqual(['label', 'mark']);
  });

  test('a copy that somebody made of a child, with all its marks, is theirs', async () => {
    await start();
    await world.app([other('o')]);
    const { metadata, spec } = await world.state.get(otherBoxes.pointer('o'));
    const { labels, annotations } = metadata;
    await world.state.create(otherBoxes.create({ id: 'copy', spec, labels, annotations }));
    await world.settle();
    expect(await world.present()).toEqual(['copy', 'o']);
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect([await world.find(apps.pointer('app')), await world.present()]).toEqual([undefined, ['copy']]);
  });

  test('one that was taken over and is on record is removed all the same', async () => {
    await start();
    await world.state.create(otherBoxes.create({ id: 'o', spec: { size: 1 } }));
    await world.app([other('o')]);
    expect((await world.state.get(otherBoxes.pointer('o'))).metadata.owner).toBe('');
    await forceAway();
    await world.settle();
    expect(await world.present()).toEqual([]);
  });
});

describe('deletion', () => {
  test('the finalizer orphan: everything lives on without marks, also after a restart, and the workload goes', async () => {
    await start();
    await world.app([other('o'), other('p')]);
    await world.state.addFinalizer(apps.pointer('app'), orphanFinalizer);
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
    expect(await world.find(companion)).toBeUndefined();
    await world.restart();
    expect(await world.present()).toEqual(['o', 'p']);
    expect((await world.state.get(otherBoxes.pointer('o'))).metadata.phase).toBe('running');
  });

  test('a conflict at its end keeps our finalizer until the children are gone', async () => {
    await start();
    await world.app([other('o')]);
    let conflicts = 7;
    world.before = (line) => {
      if (line === 'destroy Boxes/o' && conflicts-- > 0) throw new SteadystateError('Conflict', 'changed', { reason: 'version' });
    };
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect((await world.state.get(apps.pointer('app'))).metadata.finalizers).toHaveLength(1);
    await world.environment.advance(60_000);
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
    expect(await world.present()).toEqual([]);
    expect(world.writes.indexOf('destroy Boxes/o')).toBeLessThan(world.writes.lastIndexOf('update Apps/app'));
  });

  test('never touches another incarnation of a child', async () => {
    await start();
    await world.app([other('o')]);
    world.before = (line) => {
      if (line !== 'update Boxes/o') return;
      world.before = () => {};
      // Between the look and the teardown somebody puts another one there.
      void world.store.destroy(otherBoxes.pointer('o'), { owner });
      void world.store.create(otherBoxes.create({ id: 'o', spec: { size: 7 } }), { owner: 'rival' });
    };
    await world.state.teardown(apps.pointer('app'));
    await world.environment.advance(60_000);
    const { metadata, spec } = await world.state.get(otherBoxes.pointer('o'));
    expect({ owner: metadata.owner, phase: metadata.phase, spec }).toEqual({ owner: 'rival', phase: 'running', spec: { size: 7 } });
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
  });

  test('without a status the children are found by their label', async () => {
    await start();
    await world.app([other('o'), other('p')]);
    await world.halt();
    await world.state.destroy(companion, { owner });
    await world.state.teardown(apps.pointer('app'));
    await world.start();
    expect(await world.present()).toEqual([]);
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
  });

  test('of its collection does not strand it', async () => {
    const pools = defineResource({ type: 'Pools.example.dev', spec: z.object({ size: z.number() }) });
    await start({
      collection: { definition: pools },
      getResources: ({ collection, spec }) =>
        childrenOf({ spec: { children: spec.children.map((child) => ({ ...child, spec: collection?.body as { size: number } })) } }),
    });
    await world.app([other('o')]);
    expect(await world.condition('Ready')).toContain('False CollectionNotFound');
    await world.state.create(pools.create({ id: 'main', spec: { size: 3 } }));
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o')))?.spec).toEqual({ size: 3 });
    await world.state.updateWithConflicts(pools.pointer('main'), (draft) => void (draft.spec = { size: 4 }));
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o')))?.spec).toEqual({ size: 4 });
    await world.state.create(pools.create({ id: 'second', spec: { size: 5 } }));
    await world.settle();
    expect(await world.condition('Ready')).toContain('False CollectionAmbiguous');
    await world.state.destroy(pools.pointer('second'));
    await world.state.destroy(pools.pointer('main'));
    await world.settle();
    expect(await world.present()).toEqual(['o']);
    await world.state.teardown(apps.pointer('app'));
    await world.settle();
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
    expect(await world.present()).toEqual([]);
  });
});

describe('dependencies', () => {
  const bases = defineResource({
    type: 'Bases.example.dev',
    spec: z.object({}),
    status: { type: 'BaseStatuses.example.dev' },
  });
  const base = async (id: string, ready: boolean, namespace = 'default'): Promise<void> => {
    if ((await world.find(bases.pointer(id, namespace))) === undefined) await world.state.create(bases.create({ id, namespace, spec: {} }));
    const { metadata } = await world.state.get(bases.pointer(id, namespace));
    const condition = { type: 'Ready', status: ready ? 'True' : 'False', reason: 'Said', message: '' };
    await world.state.modify({ metadata: { namespace, type: 'BaseStatuses.example.dev', id }, spec: {} }, (draft) => {
      draft.spec = { observedVersion: metadata.version, conditions: [condition] };
    });
    await world.settle();
  };

  test('any number of them; the message names which; unready later, children are still kept and nothing is deleted', async () => {
    await start({ dependencyKinds: [bases], dependencies: () => [{ group: 'example.dev', kind: 'Bases' }] });
    await world.app([other('o')]);
    expect(await world.condition('Ready')).toBe('False DependencyNotReady no Bases in namespace default exists');
    expect(await world.present()).toEqual([]);
    await base('one', true);
    await base('two', false);
    await base('far', false, 'elsewhere');
    expect(await world.condition('Dependency')).toBe('False DependencyNotReady Bases default/two is not ready: Said');
    expect(await world.present()).toEqual(['o']);
    await base('two', true);
    expect(await world.condition('Ready')).toBe('True Ready');
    await base('two', false);
    await world.state.updateWithConflicts(otherBoxes.pointer('o'), (draft) => void (draft.spec = { size: 9 }), { owner });
    await world.settle();
    expect((await world.find(otherBoxes.pointer('o')))?.spec).toEqual({ size: 1 });
    expect(await world.condition('Dependency')).toContain('False DependencyNotReady');
    expect(await world.condition('Complete')).toBe('True Complete');
    expect(await world.condition('Ready')).toContain('False DependencyNotReady');
    expect(await world.condition('Reconciling')).toContain('True DependencyNotReady');
  });

  test('one of them is enough when that is said', async () => {
    await start({ dependencyKinds: [bases], dependencies: () => [{ group: 'example.dev', kind: 'Bases', require: 'any' }] });
    await world.app([other('o')]);
    await base('one', false);
    expect(await world.present()).toEqual([]);
    await base('two', true);
    expect(await world.present()).toEqual(['o']);
  });
});

test('a child that the store refuses is told, with what the store said', async () => {
  await start();
  world.before = (line) => {
    if (line === 'create Boxes/a') throw new SteadystateError('Forbidden', 'user operator may not create boxes');
    if (line === 'create Boxes/b') throw new SteadystateError('Invalid', 'spec.size: must be even');
  };
  await world.app([
    { id: 'a', more: { dependsOn: [] } },
    { id: 'b', more: { dependsOn: [] } },
  ]);
  expect(await world.condition('Create-Resources')).toBe('False Failed user operator may not create boxes; spec.size: must be even');
  expect((await world.status()).children.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
    'Forbidden: user operator may not create boxes',
    'Invalid: spec.size: must be even',
  ]);
  expect(await world.condition('Stalled')).toBe('absent');
  world.before = () => {};
  await world.environment.advance(60_000);
  expect(await world.present()).toEqual(['a', 'b']);
});

describe('cut off before or after any write', () => {
  /** Brings up, changes, prunes and deletes; with an operator that is cut off at its n-th write, and a new one after it. */
  async function life(cut: number): Promise<{ readonly writes: readonly string[]; readonly cut: string | undefined }> {
    world = new World();
    let count = 0;
    let at: string | undefined;
    const end = (line: string): never => {
      at = line;
      world.before = world.after = () => {
        throw new Error('this operator has ended');
      };
      throw new Error('cut off');
    };
    const arm = (): void => {
      world.before = (line) => void (count * 2 === cut && end(line));
      world.after = (line) => void (count++ * 2 + 1 === cut && end(line));
    };
    const disarm = async (): Promise<void> => {
      if (at === undefined) return;
      world.before = world.after = () => {};
      await world.restart();
    };
    arm();
    await world.start();
    const steps: (() => Promise<void>)[] = [
      () => world.app([other('a'), other('b'), other('c')]),
      () => world.app([{ ...other('a'), spec: { size: 2 } }, other('c')]),
      async () => {
        await world.state.teardown(apps.pointer('app'));
        await world.settle();
      },
    ];
    const writes: string[] = [];
    for (const [index, step] of steps.entries()) {
      await step();
      await disarm();
      await world.environment.advance(120_000);
      writes.push(...world.takeWrites());
      if (index === 0) expect(await world.present()).toEqual(['a', 'b', 'c']);
      if (index === 1) {
        expect(await world.present()).toEqual(['a', 'c']);
        expect((await world.find(otherBoxes.pointer('a')))?.spec).toEqual({ size: 2 });
        expect(await world.condition('Ready')).toBe('True Ready');
      }
    }
    expect(await world.present()).toEqual([]);
    expect(await world.find(companion)).toBeUndefined();
    expect(await world.find(apps.pointer('app'))).toBeUndefined();
    return { writes, cut: at };
  }
  const effects = (writes: readonly string[]): readonly string[] =>
    writes.filter((line) => line.includes('Boxes/') && !line.startsWith('update')).sort();

  test('the end is the same, with as many creates and destroys of each child', async () => {
    const calm = await life(-1);
    expect(effects(calm.writes)).toEqual([
      'create Boxes/a',
      'create Boxes/b',
      'create Boxes/c',
      'destroy Boxes/a',
      'destroy Boxes/b',
      'destroy Boxes/c',
    ]);
    const cuts: string[] = [];
    for (let cut = 0; cut < calm.writes.length * 2; cut++) {
      await world[Symbol.asyncDispose]();
      const { writes, cut: at } = await life(cut);
      if (at !== undefined) cuts.push(at);
      expect(effects(writes), `cut ${cut} at ${at}`).toEqual(effects(calm.writes));
    }
    // Each write was cut on both sides.
    for (const line of new Set(calm.writes)) expect(cuts.filter((at) => at === line).length).toBeGreaterThanOrEqual(2);
  });

  test('a child that was made and then never recorded is known all the same, also when nobody wants it any more', async () => {
    await start();
    world.after = (line) => {
      if (line !== 'create Boxes/b') return;
      world.before = world.after = () => {
        throw new Error('this operator has ended');
      };
      throw new Error('cut off');
    };
    await world.app([other('a'), other('b')]);
    await world.halt();
    world.before = world.after = () => {};
    expect(await world.present()).toEqual(['a', 'b']);
    await world.app([other('a')]);
    await world.start();
    await world.environment.advance(60_000);
    expect(await world.present()).toEqual(['a']);
  });
});
