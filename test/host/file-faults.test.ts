import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { FilePort } from '../../src/environment/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import {
  directoryDefinition,
  directoryStatusDefinition,
  fileDefinition,
  fileStatusDefinition,
  hostOperator,
} from '../../src/host/index.ts';
import { createRuntime } from '../../src/runtime/index.ts';
import type { State } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';

/** A disk that fails for as long as it is told to. */
interface Disk {
  readonly state: State;
  readonly folder: string;
  fail: ((method: string) => string | undefined) | undefined;
  stop(): Promise<void>;
  start(): Promise<void>;
}

async function withFailingDisk(work: (disk: Disk) => Promise<void>): Promise<void> {
  const environment = nodeEnvironment();
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'faults-')));
  const store = memoryState({ environment });
  let running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  const disk = {
    state: wrapCore(store, { environment }),
    folder,
    fail: undefined as ((method: string) => string | undefined) | undefined,
    async stop() {
      running?.stop.abort();
      await running?.ended;
    },
    async start() {
      const runtime = createRuntime({ state: store, environment });
      hostOperator({ environment: { ...environment, files }, pollMs: 20 }).register(runtime);
      const stop = new AbortController();
      running = { stop, ended: runtime.run(stop.signal) };
    },
  };
  const files = new Proxy(environment.files, {
    get: (target, name: keyof FilePort) => {
      const method = target[name] as (...given: unknown[]) => unknown;
      return async (...given: unknown[]) => {
        const code = disk.fail?.(name);
        if (code !== undefined) throw Object.assign(new Error(`${code}: ${name}`), { code });
        return Reflect.apply(method, target, given);
      };
    },
  });
  await disk.start();
  try {
    await work(disk);
  } finally {
    await disk.stop();
    await store[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  }
  expect(environment.open.counts()).toEqual({});
}

/** A file that is on disk as declared, and where its status is. */
async function readyFile({ state, folder }: Disk) {
  const path = join(folder, 'a.txt');
  const pointer = fileStatusDefinition.pointer('a');
  await state.create(fileDefinition.create({ id: 'a', spec: { path, within: folder, content: 'one' } }));
  await state.watchFor(pointer, { condition: ({ spec }) => spec.ready });
  return { path, pointer };
}

const failing =
  (code: string, ...methods: string[]) =>
  (method: string) =>
    methods.includes(method) ? code : undefined;

test.each([
  ['a full disk', 'ENOSPC', 'writeTemporary', 'the disk is full; make room'],
  ['a disk that cannot sync', 'EIO', 'sync', 'EIO: sync'],
  ['a folder that may not be written', 'EACCES', 'rename', 'no permission; change the permissions'],
])('%s is told, nothing half-written is left, and it is tried again', async (_name, code, method, message) => {
  await withFailingDisk(async (disk) => {
    const { state, folder } = disk;
    const { path, pointer } = await readyFile(disk);
    disk.fail = failing(code, method);
    await state.updateWithConflicts(fileDefinition.pointer('a'), (draft) => {
      draft.spec = { path, within: folder, content: 'two', mode: '0600' };
    });
    const failed = await state.watchFor(pointer, { condition: ({ spec }) => spec.state === 'Failed' });
    expect(failed.spec).toMatchObject({ ready: false, reason: 'CannotWrite' });
    expect(failed.spec.message).toContain(message);
    expect(['one', 'two']).toContain(readFileSync(path, 'utf8'));
    expect(readdirSync(folder)).toEqual(['a.txt']);
    disk.fail = undefined;
    await state.watchFor(pointer, { condition: ({ spec }) => spec.ready });
    expect(readFileSync(path, 'utf8')).toBe('two');
  });
});

test('a file of somebody else is not ours because writing over it failed', async () => {
  await withFailingDisk(async (disk) => {
    const { state, folder } = disk;
    const path = join(folder, 'a.txt');
    writeFileSync(path, 'of a person');
    disk.fail = failing('EACCES', 'rename');
    await state.create(fileDefinition.create({ id: 'a', spec: { path, within: folder, content: 'one' } }));
    await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.state === 'Failed' });
    await state.teardown(fileDefinition.pointer('a'));
    await state.watchFor(fileDefinition.pointer('a'), { finalizersEmpty: true });
    expect(readFileSync(path, 'utf8')).toBe('of a person');
  });
});

test('a folder that cannot be made is told, and tried again', async () => {
  await withFailingDisk(async (disk) => {
    const { state, folder } = disk;
    disk.fail = failing('EROFS', 'makeDirectory');
    const path = join(folder, 'data');
    const pointer = directoryStatusDefinition.pointer('d');
    await state.create(directoryDefinition.create({ id: 'd', spec: { path, within: path } }));
    expect((await state.watchFor(pointer, { condition: ({ spec }) => spec.state === 'Failed' })).spec.message).toContain(
      'the file system is read-only',
    );
    disk.fail = undefined;
    await state.watchFor(pointer, { condition: ({ spec }) => spec.ready });
    expect(readdirSync(folder)).toEqual(['data']);
    await state.teardown(directoryDefinition.pointer('d'));
    await state.watchFor(directoryDefinition.pointer('d'), { finalizersEmpty: true });
    expect(readdirSync(folder)).toEqual([]);
  });
});

test('a file whose removal fails keeps its resource until it is gone', async () => {
  await withFailingDisk(async (disk) => {
    const { state, folder } = disk;
    await state.create(fileDefinition.create({ id: 'a', spec: { path: join(folder, 'a.txt'), within: folder, content: 'one' } }));
    await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.ready });
    disk.fail = failing('EBUSY', 'remove');
    await state.teardown(fileDefinition.pointer('a'));
    const told = await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.state === 'Failed' });
    expect(told.spec).toMatchObject({ reason: 'CannotRemove' });
    disk.fail = undefined;
    await state.watchFor(fileDefinition.pointer('a'), { finalizersEmpty: true });
    expect(readdirSync(folder)).toEqual([]);
  });
});

test('a file that may not be read is replaced: its mode was changed on disk', async () => {
  await withFailingDisk(async (disk) => {
    const { state } = disk;
    const { path, pointer } = await readyFile(disk);
    let refused = 0;
    disk.fail = (method) => (method === 'read' && (statSync(path).mode & 0o400) === 0 && ++refused > 0 ? 'EACCES' : undefined);
    chmodSync(path, 0);
    await state.watchFor(pointer, { condition: ({ spec }) => spec.ready && spec.corrections === 1 });
    expect([refused, statSync(path).mode & 0o777, readFileSync(path, 'utf8')]).toEqual([1, 0o644, 'one']);
  });
});

test('a path that was given up is free for others', async () => {
  await withFailingDisk(async ({ state, folder }) => {
    const spec = (name: string) => ({ path: join(folder, name), within: folder, content: name });
    await state.create(fileDefinition.create({ id: 'a', spec: spec('one') }));
    await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.ready });
    await state.updateWithConflicts(fileDefinition.pointer('a'), (draft) => {
      draft.spec = fileDefinition.validate(spec('two'));
    });
    await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.ready && spec.path.endsWith('two') });
    await state.create(fileDefinition.create({ id: 'b', spec: spec('one') }));
    await state.watchFor(fileStatusDefinition.pointer('b'), { condition: ({ spec }) => spec.ready });
    expect(readdirSync(folder)).toEqual(['one', 'two']);
  });
});

test.each(['while it runs', 'while none runs'])('what was removed past its finalizer %s keeps no path from others', async (when) => {
  await withFailingDisk(async (disk) => {
    const { state, folder } = disk;
    const spec = { path: join(folder, 'one'), within: folder, content: 'one' };
    await state.create(fileDefinition.create({ id: 'a', spec }));
    await state.watchFor(fileStatusDefinition.pointer('a'), { condition: ({ spec }) => spec.ready });
    const data = join(folder, 'data');
    await state.create(directoryDefinition.create({ id: 'd', spec: { path: data, within: data } }));
    await state.watchFor(directoryStatusDefinition.pointer('d'), { condition: ({ spec }) => spec.ready });
    if (when === 'while none runs') await disk.stop();
    // Whoever does this by force is faster than the controller that holds it.
    for (const [pointer, finalizer] of [
      [fileDefinition.pointer('a'), 'host-files'],
      [directoryDefinition.pointer('d'), 'host-directories'],
    ] as const) {
      await state.removeFinalizer(pointer, finalizer);
      if (await state.teardown(pointer)) await state.destroy(pointer);
      else await state.watchFor(pointer, { finalizersEmpty: true }).then(() => state.destroy(pointer));
    }
    if (when === 'while none runs') await disk.start();
    await state.watchFor(fileStatusDefinition.pointer('a'), { eventTypes: ['destroyed'] });
    await state.watchFor(directoryStatusDefinition.pointer('d'), { eventTypes: ['destroyed'] });
    await state.create(fileDefinition.create({ id: 'b', spec }));
    await state.watchFor(fileStatusDefinition.pointer('b'), { condition: ({ spec }) => spec.ready });
  });
});
