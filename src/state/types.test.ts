import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { memoryState } from '../backends/memory/index.ts';
import type { Resource } from '../resource/index.ts';
import { defineResource } from '../resource/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import type { ResourceList, StateEvent } from './index.ts';
import { wrapCore } from './index.ts';

const rooms = defineResource({ type: 'Rooms.example.dev', spec: z.object({ seats: z.number(), name: z.string().default('') }) });
interface Room {
  seats: number;
  name: string;
}

test('a pointer and a kind of a definition carry the type of its specs: no call needs a cast', async () => {
  const environment = manualEnvironment();
  await using core = memoryState({ environment });
  const state = wrapCore(core, { environment });
  const made = await state.create(rooms.create({ id: 'blue', spec: { seats: 4 } }));
  expectTypeOf(made).toEqualTypeOf<Resource<Room>>();
  expectTypeOf(await state.get(rooms.pointer('blue'))).toEqualTypeOf<Resource<Room>>();
  expectTypeOf(await state.list(rooms.kind())).toEqualTypeOf<ResourceList<Room>>();
  await state.updateWithConflicts(rooms.pointer('blue'), (draft) => {
    expectTypeOf(draft.spec).toEqualTypeOf<Room>();
    draft.spec.seats += 1;
    // @ts-expect-error There is no such field.
    expect(draft.spec.chairs).toBeUndefined();
  });
  await state.modify(rooms.create({ id: 'red', spec: { seats: 1 } }), (draft) => void (draft.spec.name = 'red'));
  const awaited = await state.watchFor(rooms.pointer('red'), { condition: ({ spec }) => spec.seats === 1 });
  expectTypeOf(awaited.spec).toEqualTypeOf<Room>();
  await using watch = await state.watchKind(rooms.kind(), { bootstrapContents: true });
  for await (const event of watch) {
    expectTypeOf(event).toEqualTypeOf<StateEvent<Room>>();
    if (event.type === 'created') expectTypeOf(event.resource.spec.seats).toBeNumber();
    // A tombstone has no spec.
    if (event.type === 'destroyed') expectTypeOf(event.resource.spec).toEqualTypeOf<Room | undefined>();
    if (event.type === 'bootstrapped') break;
  }
  // Without a definition nothing is known of a spec.
  expectTypeOf((await state.get({ namespace: 'default', type: rooms.type, id: 'blue' })).spec).toBeUnknown();
  // @ts-expect-error Nor may it be used as if it were.
  expect((await state.get({ namespace: 'default', type: rooms.type, id: 'blue' })).spec.seats).toBe(5);
});

test('the typed view of a misfit is Invalid with its pointer, and the misfit can be read all the same', async () => {
  const environment = manualEnvironment();
  await using core = memoryState({ environment });
  const state = wrapCore(core, { environment });
  await state.create({ metadata: { namespace: 'default', type: rooms.type, id: 'odd' }, spec: { seats: 'many' } });
  const odd = await state.get({ namespace: 'default', type: rooms.type, id: 'odd' });
  expect(odd.spec).toEqual({ seats: 'many' });
  expect(() => rooms.from(odd)).toThrow(
    expect.objectContaining({
      code: 'Invalid',
      pointer: { namespace: 'default', type: rooms.type, id: 'odd' },
      issues: [expect.objectContaining({ path: 'spec.seats' })],
    }),
  );
  const [listed] = (await state.list({ namespace: 'default', type: rooms.type })).items;
  expect(() => rooms.from(listed as Resource)).toThrow(/odd/);
  expectTypeOf(rooms.from).returns.toEqualTypeOf<Resource<Room>>();
});
