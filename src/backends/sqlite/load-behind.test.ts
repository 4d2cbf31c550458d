import { expect, test } from 'vitest';
import { inFreshFolder, kind, thing } from '../../../test/sqlite-world.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { errorCode } from '../../resource/index.ts';
import { openDatabase } from './driver.ts';
import type { SqliteState } from './sqlite-state.ts';
import { openSqliteState } from './sqlite-state.ts';

const environment = nodeEnvironment();
let file: string;

inFreshFolder(environment, (...given) => {
  [, file] = given;
});

const pointer = (id: string) => ({ ...kind, id });
const codeOf = (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => errorCode(error) ?? String(error),
  );

/** What is called at once after it comes before the first resource is read. */
const openBehind = (): Promise<SqliteState> => openSqliteState({ file, environment, readBehindFrom: 0 });

async function fill(count = 200): Promise<void> {
  await using state = await openSqliteState({ file, environment });
  await Promise.all(Array.from({ length: count }, (_, index) => state.create(thing(`n${index}`, { index }))));
  await state.create({ metadata: { namespace: 'other', type: 'Others.example.dev', id: 'n7' }, spec: 'another of that name' });
}

function damage(sql: string): void {
  const database = openDatabase(file);
  database.exec(sql);
  database.close();
}

test('a get is answered before all is read; a list, a watch, a write and what is not there wait for the whole', async () => {
  await fill();
  await using state = await openBehind();
  let loaded = false;
  void state.loaded.then(() => {
    loaded = true;
  });
  const spec = { index: 'before' };
  const own = { metadata: pointer('new'), spec };
  const calls = Promise.all([
    state.get(pointer('n7')),
    state.get({ namespace: 'other', type: 'Others.example.dev', id: 'n7' }),
    codeOf(state.get(pointer('missing'))),
    codeOf(state.get({ namespace: 'nowhere', type: 'Others.example.dev', id: 'n7' })),
    state.list(kind),
    state.create(own),
    codeOf(state.create(thing('n8'))),
    state.destroy(pointer('n9')),
    state.watchKind(kind, { bootstrapContents: true }),
    state.waitForRevision?.(202),
  ]);
  expect(loaded).toBe(false);
  // As for any other call: what was given is not looked at again.
  spec.index = 'after';
  const [found, other, missing, nowhere, list, created, twice, , watch] = await calls;
  expect(found).toMatchObject({ metadata: { id: 'n7', phase: 'running' }, spec: { index: 7 } });
  expect(Object.isFrozen(found.spec)).toBe(true);
  expect(other.spec).toBe('another of that name');
  expect([missing, nowhere, twice]).toEqual(['NotFound', 'NotFound', 'Conflict']);
  expect(list.items).toHaveLength(200);
  expect(created).toMatchObject({ metadata: { version: '202' }, spec: { index: 'before' } });
  expect(loaded).toBe(true);
  const seen: string[] = [];
  for await (const event of watch) {
    if (event.type === 'bootstrapped') break;
    if (event.type === 'created') seen.push(event.resource.metadata.id);
  }
  expect(seen.length).toBeGreaterThanOrEqual(199);
  expect(await codeOf(state.get(pointer('n9')))).toBe('NotFound');
});

test('many gets of one turn are one walk, and those after it are answered too', async () => {
  await fill();
  await using state = await openBehind();
  const ids = Array.from({ length: 200 }, (_, index) => `n${index}`);
  const first = Promise.all(ids.map((id) => state.get(pointer(id))));
  await state.get(pointer('n0'));
  const second = Promise.all(ids.map((id) => state.get(pointer(id))));
  for (const found of [await first, await second]) expect(found.map(({ spec }) => spec)).toEqual(ids.map((_, index) => ({ index })));
});

test('a resource that went missing is no NotFound: all that waits is told of the damage, and nothing is written', async () => {
  await fill();
  damage("DELETE FROM resources WHERE id = 'n3'");
  const state = await openBehind();
  const calls = [
    state.get(pointer('n3')),
    state.get(pointer('missing')),
    state.list(kind),
    state.create(thing('new')),
    state.destroy(pointer('n4')),
    state.watchKind(kind),
    Promise.resolve(state.waitForRevision?.(1000)),
    state.loaded,
  ];
  expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => 'Corrupt'));
  for (const late of [state.get(pointer('n4')), state.list(kind), state.update(thing('n4'))]) expect(await codeOf(late)).toBe('Corrupt');
  await state[Symbol.asyncDispose]();
  damage("UPDATE resources SET record = record WHERE id = 'n4'");
  const database = openDatabase(file);
  expect(database.prepare('SELECT count(*) AS count FROM resources').get()).toMatchObject({ count: 200 });
  database.close();
});

test.each([
  ['a changed record', "UPDATE resources SET record = replace(record, '7', '8') WHERE id = 'n7'"],
  ['another name for another', "UPDATE resources SET id = 'n7' WHERE id = 'n8'"],
  ['another kind', "UPDATE resources SET kind = 2 WHERE id = 'n7'"],
])('%s is never served', async (_what, sql) => {
  await fill();
  damage(sql);
  const state = await openBehind();
  expect(await Promise.all([state.get(pointer('n7')), state.get(pointer('n8')), state.loaded].map(codeOf))).toContain('Corrupt');
  expect(await codeOf(state.get(pointer('n7')))).toBe('Corrupt');
  await state[Symbol.asyncDispose]();
});

test('a store is closed, and a caller gives up, while it is read', async () => {
  await fill();
  const state = await openBehind();
  const stop = new AbortController();
  const { signal } = stop;
  const givenUp = [state.list(kind, { signal }), state.create(thing('new'), { signal }), state.get(pointer('missing'), { signal })].map(
    codeOf,
  );
  const waiting = [state.list(kind), state.get(pointer('missing'))].map(codeOf);
  stop.abort(new Error('enough'));
  expect(await Promise.all(givenUp)).toEqual(givenUp.map(() => 'Error: enough'));
  await state[Symbol.asyncDispose]();
  for (const code of await Promise.all([...waiting, codeOf(state.loaded)])) expect([undefined, 'Closed', 'NotFound']).toContain(code);
  await using again = await openSqliteState({ file, environment });
  expect((await again.list(kind)).items).toHaveLength(200);
});

test('a small store is known to be whole once it is open', async () => {
  await fill();
  damage("DELETE FROM resources WHERE id = 'n3'");
  expect(await codeOf(openSqliteState({ file, environment }))).toBe('Corrupt');
});
