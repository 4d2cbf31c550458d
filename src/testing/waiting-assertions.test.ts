import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryState } from '../backends/memory/index.ts';
import { isNotFoundError } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { wrapCore } from '../state/index.ts';
import type { ManualEnvironment } from './manual-environment.ts';
import { manualEnvironment } from './manual-environment.ts';
import type { AssertionWorld } from './waiting-assertions.ts';
import {
  assertAll,
  assertLength,
  assertNoResource,
  assertResource,
  assertResources,
  destroyAll,
  resourceIds,
  teardownAll,
} from './waiting-assertions.ts';

const kind = { namespace: 'default', type: 'Apples.example.dev' };
const pointer = (id: string) => ({ ...kind, id });

let environment: ManualEnvironment;
let memory: CoreState & AsyncDisposable;
let world: AssertionWorld;

beforeEach(() => {
  environment = manualEnvironment();
  memory = memoryState({ environment });
  world = { state: wrapCore(memory, { environment }), environment };
});

afterEach(async () => {
  await memory[Symbol.asyncDispose]();
  expect(environment.open.counts()).toEqual({});
});

async function put(id: string, size: number): Promise<void> {
  await world.state.modify({ metadata: pointer(id), spec: { size } }, (draft) => void (draft.spec = { size }));
}

const isLarge = ({ spec }: { readonly spec: unknown }): void => expect((spec as { size: number }).size).toBeGreaterThan(5);

/** Whether it is still waiting; and that it ends once `change` was made. */
async function waitsFor(assertion: Promise<unknown>, change: () => Promise<void>): Promise<void> {
  let ended = false;
  const outcome = assertion.finally(() => {
    ended = true;
  });
  await environment.advance(5000);
  expect(ended).toBe(false);
  await change();
  await environment.settle();
  expect(ended).toBe(true);
  await outcome;
}

/** The message with which it gives up. */
async function timesOut(assertion: Promise<unknown>): Promise<string> {
  const outcome = assertion.then(
    () => 'passed',
    (error: Error) => error.message,
  );
  await environment.advance(10_000);
  return outcome;
}

describe('assertResource', () => {
  test('waits until it is there and passes', async () => {
    await put('a', 1);
    await waitsFor(assertResource(world, pointer('a'), isLarge), () => put('a', 7));
    await waitsFor(assertResource(world, pointer('b')), () => put('b', 7));
    expect((await assertResource(world, pointer('b'))).spec).toEqual({ size: 7 });
  });

  test('says what was wrong', async () => {
    await put('a', 1);
    expect(await timesOut(assertResource(world, pointer('a'), isLarge))).toMatch(
      /timed out after 10000 ms, expected Apples.example.dev\/default\/a to be as asserted: expected 1 to be greater than 5/,
    );
    expect(await timesOut(assertResource(world, pointer('b')))).toMatch(/does not exist/);
  });

  test('says so when the store ends', async () => {
    const outcome = assertResource(world, pointer('a')).catch((error: Error) => error.message);
    await environment.settle();
    await memory[Symbol.asyncDispose]();
    expect(await outcome).toMatch(/does not exist|closed/);
  });
});

test('assertResources waits for all of them', async () => {
  await put('a', 7);
  await put('b', 1);
  const all = ['a', 'b', 'c'];
  await waitsFor(assertResources(world, kind, ['a', 'b'], isLarge), () => put('b', 7));
  await waitsFor(assertResources(world, kind, all), () => put('c', 1));
  expect(await timesOut(assertResources(world, kind, all, isLarge))).toMatch(/3 of Apples.* expected 1 to be greater than 5/);
});

test('assertAll waits for every one', async () => {
  await assertAll(world, kind, isLarge);
  await put('a', 7);
  await put('b', 1);
  await waitsFor(assertAll(world, kind, isLarge), () => put('b', 8));
  await put('b', 2);
  expect(await timesOut(assertAll(world, kind, isLarge))).toMatch(/all of Apples.*: b: expected 2/);
});

test('assertNoResource waits until it is gone', async () => {
  await assertNoResource(world, pointer('a'));
  await put('a', 1);
  await world.state.addFinalizer(pointer('a'), 'holder');
  expect(await timesOut(assertNoResource(world, pointer('a')))).toMatch(/it is there: running, owned by nobody, finalizers: holder/);
  await world.state.removeFinalizer(pointer('a'), 'holder');
  await waitsFor(assertNoResource(world, pointer('a')), () => world.state.destroy(pointer('a')));
});

test('assertLength waits for the number', async () => {
  await assertLength(world, kind, 0);
  await put('a', 1);
  await waitsFor(assertLength(world, kind, 2), () => put('b', 1));
  expect(await timesOut(assertLength(world, kind, 3))).toMatch(/expected 3 of Apples.*: there are 2: a, b/);
});

test('destroyAll and teardownAll, whoever owns them', async () => {
  await put('a', 1);
  await world.state.create({ metadata: pointer('b'), spec: {} }, { owner: 'baker' });
  await teardownAll(world, kind);
  expect((await world.state.list(kind)).items.map(({ metadata }) => metadata.phase)).toEqual(['tearingDown', 'tearingDown']);
  expect(await resourceIds(world, kind)).toEqual(['a', 'b']);
  await world.state.addFinalizer(pointer('a'), 'holder');
  expect(await timesOut(destroyAll(world, kind))).toMatch(/timed out: Apples.* could not be destroyed: a \(holder\)/);
  await waitsFor(destroyAll(world, kind), () => world.state.removeFinalizer(pointer('a'), 'holder'));
  expect(await resourceIds(world, kind)).toEqual([]);
  await destroyAll(world, kind);
  await expect(world.state.get(pointer('a'))).rejects.toSatisfy(isNotFoundError);
});

test('destroyAll and teardownAll end what they found, not what others put in its place', async () => {
  const list = memory.list.bind(memory);
  for (const end of [teardownAll, destroyAll]) {
    await put('a', 1);
    await put('b', 1);
    // Between their look and their work one goes, and another is made anew.
    const between = async (...call: Parameters<CoreState['list']>): Promise<Awaited<ReturnType<CoreState['list']>>> => {
      const found = await list(...call);
      await memory.destroy(pointer('a'));
      await memory.destroy(pointer('b'));
      await memory.create({ metadata: pointer('b'), spec: {} });
      return found;
    };
    await end({ ...world, state: { ...world.state, list: between as never, capabilities: memory.capabilities } }, kind);
    expect((await world.state.get(pointer('b'))).metadata.phase).toBe('running');
    expect(await resourceIds(world, kind)).toEqual(['b']);
    await memory.destroy(pointer('b'));
  }
});
