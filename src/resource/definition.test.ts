import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { StandardSchemaV1 } from './index.ts';
import { DefinitionRegistry, defineResource, describeDefinition, makeResource, singular } from './index.ts';

const stacks = defineResource({
  type: 'Stacks.example.dev',
  aliases: ['st'],
  spec: z.object({ size: z.number().int().min(1), name: z.string().default('none') }),
  status: { type: 'StackStatuses.example.dev' },
});

function schemaOf(validate: (value: unknown) => unknown): StandardSchemaV1<unknown, unknown> {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as never } };
}

describe('defineResource', () => {
  test('constructs resources whose spec is the output of the schema, frozen', () => {
    const resource = stacks.create({ id: 'a', spec: { size: 2 }, labels: { app: 'web' } });
    expect(resource.spec).toEqual({ size: 2, name: 'none' });
    expect(resource.metadata).toMatchObject({ namespace: 'default', type: 'Stacks.example.dev', id: 'a', labels: { app: 'web' } });
    expect(Object.isFrozen(resource.spec)).toBe(true);
    expect(makeResource(resource)).toBe(resource);
    expect(stacks.pointer('a', 'other')).toEqual({ namespace: 'other', type: 'Stacks.example.dev', id: 'a' });
    expect(stacks.kind()).toEqual({ namespace: 'default', type: 'Stacks.example.dev' });
    expect([stacks.is(resource), stacks.displayType, stacks.statusType]).toEqual([true, 'Stack', 'StackStatuses.example.dev']);
  });

  test('names every path that does not fit, with the pointer', () => {
    expect(() => stacks.create({ id: 'a', spec: { size: 0, name: 5 } as never })).toThrow(
      expect.objectContaining({
        code: 'Invalid',
        pointer: expect.objectContaining({ id: 'a' }),
        issues: [expect.objectContaining({ path: 'spec.size' }), expect.objectContaining({ path: 'spec.name' })],
      }),
    );
  });

  test('what fits no form of a union is told by the form that it comes nearest to', () => {
    const shapes = defineResource({
      type: 'Shapes.example.dev',
      spec: z.object({
        shape: z.union([
          z.strictObject({ circle: z.strictObject({ radius: z.int() }) }),
          z.strictObject({ box: z.strictObject({ sides: z.array(z.int()) }) }),
          z.literal('none'),
        ]),
        sizes: z.record(z.string().regex(/^[a-z]+$/, 'expected small letters'), z.union([z.int(), z.literal('auto')])).optional(),
      }),
    });
    const issuesOf = (spec: unknown): unknown => {
      try {
        return shapes.validate(spec);
      } catch (error) {
        return (error as { readonly issues: unknown }).issues;
      }
    };
    expect(issuesOf({ shape: { box: { sides: [1, 'two'] } } })).toEqual([
      { path: 'spec.shape.box.sides[1]', message: expect.stringContaining('expected number') },
    ]);
    const none = issuesOf({ shape: 5 }) as readonly { readonly path: string; readonly message: string }[];
    expect(none.map(({ path }) => path)).toEqual(['spec.shape']);
    expect(none[0]?.message).toMatch(/expected object.*; or .*"none"/);
    expect(issuesOf({ shape: 'none', sizes: { Big: 1, small: 'x' } })).toEqual([
      { path: 'spec.sizes.Big', message: expect.stringContaining('expected small letters') },
      { path: 'spec.sizes.small', message: expect.stringMatching(/expected number.*; or .*"auto"/) },
    ]);
    expect(issuesOf({ shape: {} })).toEqual([{ path: 'spec.shape', message: expect.stringMatching(/circle: .*; or box: /) }]);
  });

  test('checks a frozen value once', () => {
    let checks = 0;
    const counted = defineResource({
      type: 'Counted.example.dev',
      spec: schemaOf((value) => {
        checks++;
        return { value };
      }),
    });
    const resource = counted.create({ id: 'a', spec: { size: 1 } });
    counted.validate(resource.spec);
    counted.from(resource);
    counted.from(resource);
    expect(checks).toBe(1);
    const mutable = { size: 1 };
    counted.validate(mutable);
    counted.validate(mutable);
    expect(checks, 'what may change is checked each time').toBe(3);
  });

  test('the typed view of what does not fit is Invalid with the pointer; of another type too', () => {
    const odd = makeResource({ metadata: { namespace: 'default', type: 'Stacks.example.dev', id: 'odd' }, spec: { size: 'many' } });
    expect(() => stacks.from(odd)).toThrow(expect.objectContaining({ code: 'Invalid', pointer: expect.objectContaining({ id: 'odd' }) }));
    const other = makeResource({ metadata: { namespace: 'default', type: 'Others.example.dev', id: 'x' }, spec: {} });
    expect(() => stacks.from(other)).toThrow('expected Stacks.example.dev, found Others.example.dev');
  });

  test('a schema that answers a promise is Unsupported, and its failure harms nobody', async () => {
    const late = defineResource({ type: 'Late.example.dev', spec: schemaOf(() => Promise.reject(new Error('late'))) });
    expect(() => late.validate({})).toThrow(expect.objectContaining({ code: 'Unsupported' }));
    // An unhandled rejection would fail this file.
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('a schema that answers what is no plain data is Invalid', () => {
    const dates = defineResource({ type: 'Dates.example.dev', spec: z.object({ at: z.coerce.date() }) });
    expect(() => dates.validate({ at: '2026-01-01' })).toThrow(expect.objectContaining({ code: 'Invalid' }));
  });

  test.each([
    [{ type: 'NoGroup', spec: z.any() }, 'type'],
    [{ type: '', spec: z.any() }, 'type'],
    [{ type: 'A.b', spec: {} }, 'spec'],
    [{ type: 'A.b', spec: z.any(), defaultNamespace: '\n' }, 'defaultNamespace'],
  ])('refuses %o', (options, path) => {
    expect(() => defineResource(options as never)).toThrow(expect.objectContaining({ issues: [expect.objectContaining({ path })] }));
  });
});

describe('singular', () => {
  test.each([
    ['Stacks', 'Stack'],
    ['Processes', 'Process'],
    ['ProcessStatuses', 'ProcessStatus'],
    ['Directories', 'Directory'],
    ['Boxes', 'Box'],
    ['Batches', 'Batch'],
    ['Branches', 'Branch'],
    ['Dishes', 'Dish'],
    ['Databases', 'Database'],
    ['Releases', 'Release'],
    ['Leases', 'Lease'],
    ['Houses', 'House'],
    ['Caches', 'Cache'],
    ['Nodes', 'Node'],
    ['Status', 'Status'],
    ['Access', 'Access'],
    ['Fish', 'Fish'],
  ])('%s is %s', (plural, expected) => {
    expect(singular(plural)).toBe(expected);
  });
});

describe('DefinitionRegistry', () => {
  const other = defineResource({ type: 'Stacks.other.dev', spec: z.any() });

  test('finds by type, plural, singular and alias, in any case', () => {
    const registry = new DefinitionRegistry([stacks]);
    for (const name of ['Stacks.example.dev', 'stacks.example.dev', 'stacks', 'STACK', 'St'])
      expect(registry.find(name)?.type).toBe('Stacks.example.dev');
    expect(registry.find('nothing')).toBeUndefined();
    expect(registry.get('stacks')).toBeUndefined();
    expect([...registry].map(({ type }) => type)).toEqual(['Stacks.example.dev']);
  });

  test('a name of two types is Invalid, a full type is not', () => {
    const registry = new DefinitionRegistry([stacks, other]);
    expect(() => registry.find('stacks')).toThrow('Stacks.example.dev, Stacks.other.dev');
    expect(registry.find('Stacks.other.dev')?.type).toBe('Stacks.other.dev');
  });

  test('the same definition twice is fine, another of the same type is not', () => {
    const registry = new DefinitionRegistry([stacks, stacks]);
    expect(() => registry.add(defineResource({ type: 'Stacks.example.dev', spec: z.any() }))).toThrow('defined twice');
  });
});

test('a definition is described by a resource', () => {
  const { metadata, spec } = describeDefinition(stacks);
  expect(metadata).toMatchObject({ namespace: 'meta', type: 'ResourceDefinitions.meta.cosi.dev', id: 'stacks.example.dev' });
  expect(spec).toMatchObject({
    resourceType: 'Stacks.example.dev',
    displayType: 'Stack',
    aliases: ['st'],
    statusType: 'StackStatuses.example.dev',
    hasReadiness: true,
    sensitivity: '',
  });
  expect(spec.allAliases).toEqual(['stacks.example.dev', 'stacks', 'stack', 'st']);
});
