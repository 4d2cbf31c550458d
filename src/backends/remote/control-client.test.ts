import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { nodeEnvironment } from '../../environment/index.ts';
import { defineResource, makeResource, SteadystateError } from '../../resource/index.ts';
import type { ControlProvider, Server } from '../../server/index.ts';
import { serveState } from '../../server/index.ts';
import { memoryState } from '../memory/index.ts';
import type { ControlClient, RemoteState } from './index.ts';
import { openRemoteState } from './index.ts';

const environment = nodeEnvironment();
const things = defineResource({ type: 'Things.example.dev', spec: z.object({ n: z.number(), unit: z.string().default('m') }) });
const open: AsyncDisposable[] = [];
let directory: string;

async function controlOf(more: Partial<ControlProvider> = {}): Promise<ControlClient> {
  directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const state = memoryState({ environment });
  const control: ControlProvider = { version: '1.2.3', pid: 42, store: 'memory:', ...more };
  const server: Server = await serveState({ state, environment, listen: ['unix:s'], directory, control });
  const remote: RemoteState = await openRemoteState({ address: server.addresses[0] as string, environment });
  open.push(remote, server, state);
  return remote.control as ControlClient;
}

afterEach(async () => {
  for (const part of open.splice(0)) await part[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
  expect(environment.open.counts()).toEqual({});
});

const thing = (id: string, spec: unknown) => makeResource({ metadata: { namespace: 'default', type: things.type, id }, spec });

test('who serves, what, and what it can', async () => {
  const { info } = await controlOf({ storeId: 'abc', revision: () => 7 });
  expect(info).toMatchObject({ version: '1.2.3', pid: 42, store: 'memory:', storeId: 'abc', revision: 7 });
  expect(info.capabilities).toEqual(expect.arrayContaining(['globalRevision', 'incarnations', 'multiKindWatch', 'tailEvents']));
});

test('a bundle is checked as a whole: every problem with its resource and path, or all as they would be stored', async () => {
  const client = await controlOf({ validate: (resource) => things.from(makeResource(resource)) });
  const bad = await client.validate([thing('a', { n: 1 }), thing('b', { n: 'x' }), thing('c', {})]);
  expect(bad.resources).toEqual([]);
  expect(bad.problems.map(({ index, path }) => [index, path])).toEqual([
    [1, 'spec.n'],
    [2, 'spec.n'],
  ]);
  const good = await client.validate([thing('a', { n: 1 })]);
  expect(good).toMatchObject({ problems: [], resources: [{ spec: { n: 1, unit: 'm' } }] });
});

test('a bundle that is larger than a request may be is checked all the same, each problem at its place', async () => {
  const client = await controlOf({ validate: (resource) => things.from(makeResource(resource)) });
  // 12 MB, some of it in one resource that is a request by itself.
  const size = (index: number): number => (index === 5 ? 3_000_000 : 20_000);
  const bundle = Array.from({ length: 450 }, (_, index) => thing(`t${index}`, { n: index, unit: 'x'.repeat(size(index)) }));
  const good = await client.validate(bundle);
  expect(good.problems).toEqual([]);
  expect(good.resources.map(({ metadata }) => metadata.id)).toEqual(bundle.map(({ metadata }) => metadata.id));
  const bad = await client.validate(bundle.map((one, index) => (index % 200 === 199 ? thing('bad', {}) : one)));
  expect(bad.resources).toEqual([]);
  expect(bad.problems.map(({ index, path }) => [index, path])).toEqual([
    [199, 'spec.n'],
    [399, 'spec.n'],
  ]);
  expect(await client.validate([])).toEqual({ problems: [], resources: [] });
});

test('readiness, notes and the graph come as the program tells them', async () => {
  const note = {
    controller: 'c',
    lastError: 'boom',
    failures: 2,
    failingSince: '2026-01-01T00:00:00Z',
    nextRunInMs: 1500,
    running: '',
    blockedBecause: 'flour',
    blockedSince: '2026-01-01T00:00:00Z',
  };
  const client = await controlOf({
    readiness: async ({ id }) =>
      id === 'known' ? { readiness: { status: 'InProgress', reason: 'Starting', message: 'wait' }, version: '3' } : undefined,
    notes: ({ id }) => (id === 'known' ? [note] : []),
    graph: () => '{"controllers":["c"]}',
  });
  const known = { namespace: 'default', type: things.type, id: 'known' };
  expect(await client.readiness(known)).toEqual({ readiness: { status: 'InProgress', reason: 'Starting', message: 'wait' }, version: '3' });
  expect(await client.readiness({ ...known, id: 'other' })).toBeUndefined();
  expect(await client.notes(known)).toEqual([note]);
  expect(await client.notes({ ...known, id: 'other' })).toEqual([]);
  expect(JSON.parse(await client.graph())).toEqual({ controllers: ['c'] });
});

test("a finalizer is released by the program, once: a failure is the caller's", async () => {
  const asked: unknown[] = [];
  const client = await controlOf({
    async releaseFinalizer(request) {
      asked.push(request);
      if (request.finalizer === 'none') throw new SteadystateError('NotFound', 'there is no such finalizer');
      return { record: 'a.123', holder: 'nobody' };
    },
  });
  const pointer = { namespace: 'default', type: things.type, id: 'a' };
  expect(await client.releaseFinalizer(pointer, { finalizer: 'f', uid: '7', by: 'ann' })).toEqual({ record: 'a.123', holder: 'nobody' });
  await expect(client.releaseFinalizer(pointer, { finalizer: 'none', uid: '', by: 'ann' })).rejects.toMatchObject({ code: 'NotFound' });
  expect(asked).toEqual([
    { ...pointer, finalizer: 'f', uid: '7', by: 'ann' },
    { ...pointer, finalizer: 'none', uid: '', by: 'ann' },
  ]);
});

test('a program that tells nothing answers what is true without', async () => {
  const client = await controlOf();
  expect(await client.readiness({ namespace: 'default', type: things.type, id: 'a' })).toBeUndefined();
  expect(await client.notes({ namespace: 'default', type: things.type, id: 'a' })).toEqual([]);
  expect(JSON.parse(await client.graph())).toEqual({ controllers: [] });
  await expect(
    client.releaseFinalizer({ namespace: 'default', type: things.type, id: 'a' }, { finalizer: 'f', uid: '', by: '' }),
  ).rejects.toMatchObject({ code: 'Unsupported' });
  expect((await client.validate([thing('a', { any: 1 })])).resources[0]?.spec).toEqual({ any: 1 });
});
