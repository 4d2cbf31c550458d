import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineResource } from '../resource/index.ts';
import { defineWorkload, desiredChild, kindOfType, typeOfKind } from './define-workload.ts';
import { createRegistry, registerDefaultPhases, withCustomRequeueResult, withResourceOptions } from './registry.ts';
import { checkDependencyCycles, validateWorkload } from './validate.ts';

const define = (type: string, status?: string) =>
  defineResource({ type: `${type}.example.dev`, spec: z.object({}), ...(status && { status: { type: `${status}.example.dev` } }) });
const boxes = define('Boxes');
const apps = define('Apps', 'AppStatuses');
const others = define('Others', 'OtherStatuses');
const third = define('Thirds', 'ThirdStatuses');
const getResources = (): never[] => [];

describe('defineWorkload', () => {
  test('completes what was left out', () => {
    const workload = defineWorkload({ definition: apps, children: [boxes], getResources });
    expect(workload).toMatchObject({
      kind: { group: 'example.dev', kind: 'Apps' },
      statusType: 'AppStatuses.example.dev',
      deadlineMs: 30_000,
    });
    expect(workload.phases.phases('create').map(({ name }) => name)).toEqual(['Dependency', 'Create-Resources', 'Check-Ready', 'Complete']);
    expect(workload.phases.phases('delete').map(({ name }) => name)).toEqual(['Delete-Resources', 'Deletion-Complete']);
    expect(workload.phases.phases('create')[1]?.resourceOptions).toEqual(['withWait']);
  });

  test('all that is wrong is told at once', () => {
    const wrong = { definition: boxes, children: [boxes], dependencyKinds: [boxes], collection: { definition: boxes }, getResources };
    expect(() => validateWorkload(wrong)).toThrow(
      expect.objectContaining({
        code: 'Invalid',
        issues: ['definition.status', 'children', 'dependencyKinds', 'collection'].map((path) => ({
          path,
          message: expect.stringContaining('InvalidWorkload'),
        })),
      }),
    );
    expect(() => defineWorkload(wrong)).toThrow(/needs a status type/);
  });

  test('kinds of workloads that depend on each other in a circle are refused', () => {
    const on = (definition: typeof apps, ...dependencyKinds: (typeof apps)[]) =>
      defineWorkload({ definition, children: [boxes], getResources, dependencyKinds });
    expect(() => checkDependencyCycles([on(apps, others), on(others, third), on(third)])).not.toThrow();
    expect(() => checkDependencyCycles([on(apps, others, third), on(others, third), on(third, others)])).toThrow(
      /in a circle: Others\.example\.dev → Thirds\.example\.dev → Others\.example\.dev/,
    );
  });
});

describe('Registry', () => {
  const phase = async (): Promise<boolean> => true;

  test.each([
    ['an unknown event', 'Own', 'upgrade', /unknown lifecycle event upgrade/],
    ['a name twice', 'Check-Ready', 'create', /registered twice for create/],
    ['Ready', 'Ready', 'create', /conditions of the engine/],
    ['Reconciling', 'Reconciling', 'create', /conditions of the engine/],
    ['Stalled', 'Stalled', 'create', /conditions of the engine/],
    ['Paused', 'Paused', 'create', /conditions of the engine/],
    ['a name that is no condition type', 'not a name', 'create', /letters, digits/],
    ['no name', '', 'create', /letters, digits/],
  ])('%s is an error', (_what, name, event, message) => {
    const registry = registerDefaultPhases(createRegistry());
    expect(() => registry.register(name, phase, event as 'create')).toThrow(message);
    expect(registry.phases('create')).toHaveLength(4);
  });

  test('one name for several events is none', () => {
    const registry = createRegistry().register('Own', phase, 'create').register('Own', phase, 'update').register('Own', phase, 'delete');
    expect(registry.phases('delete').map(({ name }) => name)).toEqual(['Own']);
  });

  test('options: a custom result, resource options that add up', () => {
    const [plain, custom] = createRegistry()
      .register('Plain', phase, 'create')
      .register(
        'Custom',
        phase,
        'create',
        withCustomRequeueResult({ requeueAfterMs: 5 }),
        withResourceOptions('withWait'),
        withResourceOptions(),
      )
      .phases('create');
    expect(plain?.requeue()).toBe('backoff');
    expect(plain?.defaultReconcileResult()).toBeUndefined();
    expect(custom?.requeue()).toEqual({ custom: { requeueAfterMs: 5 } });
    expect(custom?.resourceOptions).toEqual(['withWait']);
  });
});

test('a type is a kind and a group', () => {
  expect(kindOfType('Boxes.example.dev')).toEqual({ kind: 'Boxes', group: 'example.dev' });
  expect(typeOfKind(kindOfType('Boxes.example.dev'))).toBe('Boxes.example.dev');
  expect(desiredChild(boxes.create({ id: 'a', namespace: 'n', spec: {} }), { name: 'x' })).toMatchObject({
    ref: { group: 'example.dev', kind: 'Boxes', version: '', namespace: 'n', name: 'a' },
    body: {},
    name: 'x',
  });
});
