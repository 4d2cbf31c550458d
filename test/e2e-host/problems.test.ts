import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackExtra, StackInput } from '../../src/host/index.ts';
import { baseDirectoryAnnotation, hostOperator, processDefinition, stackDefinition } from '../../src/host/index.ts';
import { isInvalidError, isUnsupportedError } from '../../src/resource/index.ts';
import { condition, eventually, port, startHost } from './support.ts';

const sleeper: StackInput['services'][string] = { command: ['sleep', '1000'], ready: { delayMs: 0 } };

test('a kept port that somebody else took: told, never replaced; the others go on', async () => {
  await using host = await startHost();
  const web = `import { createServer } from 'node:net'; createServer().listen(Number(process.env.PORT), '127.0.0.1');`;
  const stack: StackInput = {
    directory: 'data',
    services: {
      web: {
        command: ['node', 'web.mjs'],
        environment: { PORT: port('web') },
        files: { 'web.mjs': web },
        ready: { tcp: `127.0.0.1:${port('web')}`, intervalMs: 20 },
      },
      free: sleeper,
    },
  };
  await host.apply('s', stack);
  const status = await host.untilReady('s');
  const given = (status.extra as StackExtra).ports?.web as number;
  const free = await host.status('s/free');
  await host.stop();
  const thief = createServer();
  await new Promise<void>((resolve) => thief.listen(given, '127.0.0.1', resolve));
  try {
    await host.startAgain();
    const waiting = await host.until('s/web', ({ reason }) => reason === 'PortTaken');
    expect(waiting).toMatchObject({ state: 'Waiting', ready: false });
    expect(waiting.message).toContain(`port ${given}, kept for \${port:web}, is in use by another program; end that program`);
    await host.until('s/free', ({ ready, pid }) => ready && pid !== free.pid);
    const told = await host.untilStack('s', (found) => condition(found, 'Ready')?.message.includes('PortTaken') === true);
    expect((told.extra as StackExtra).ports).toEqual({ web: given });
  } finally {
    await new Promise((resolve) => thief.close(resolve));
  }
  await host.until('s/web', ({ ready }) => ready);
  expect(((await host.untilReady('s')).extra as StackExtra).ports).toEqual({ web: given });
});

test('what cannot start says why; the others go on', async () => {
  await using host = await startHost();
  mkdirSync(join(host.folder, 'data'));
  writeFileSync(join(host.folder, 'data/plain.sh'), '#!/bin/sh\nsleep 1000\n');
  writeFileSync(join(host.folder, 'data/odd.sh'), '#!/no/such/interpreter\n');
  chmodSync(join(host.folder, 'data/odd.sh'), 0o755);
  const never: StackInput['services'][string] = { ...sleeper, restart: { initialDelayMs: 20, maxDelayMs: 40 } };
  await host.apply('s', {
    directory: 'data',
    services: {
      missing: { ...never, command: ['nodee', 'x.mjs'] },
      path: { ...never, command: ['./gone.sh'] },
      bit: { ...never, command: ['./plain.sh'] },
      interpreter: { ...never, command: ['./odd.sh'] },
      large: { ...never, command: ['true'], environment: { A: 'x'.repeat(3_000_000) } },
      free: sleeper,
    },
  });
  const cannot = (id: string) => host.until(id, ({ reason }) => reason === 'CannotStart');
  expect((await cannot('s/missing')).message).toMatch(/nodee was not found in PATH/);
  expect((await cannot('s/path')).message).toMatch(/gone\.sh does not exist/);
  expect((await cannot('s/bit')).message).toMatch(/no execute bit/);
  expect((await cannot('s/interpreter')).message).toMatch(/interpreter \/no\/such\/interpreter/);
  expect((await cannot('s/large')).message).toMatch(/^the command and its environment are too large for this system/);
  const spec = { command: ['true'], directory: join(host.folder, 'nowhere'), environment: {}, outputFile: join(host.folder, 'alone.log') };
  await host.state.create(processDefinition.create({ id: 'alone', spec }));
  expect((await cannot('alone')).message).toBe(`the folder ${join(host.folder, 'nowhere')} does not exist`);
  await host.until('s/free', ({ ready }) => ready);
  const told = await host.untilStack('s', (found) => /CannotStart.*nodee/.test(condition(found, 'Ready')?.message ?? ''));
  expect(condition(told, 'Files')?.status).toBe('True');
  // Mended on disk: it comes up by itself.
  chmodSync(join(host.folder, 'data/plain.sh'), 0o755);
  expect(await host.until('s/bit', ({ ready }) => ready)).toMatchObject({ restarts: 0 });
});

test('a wrong stack is refused with the field and what to do, and what runs is not touched', async () => {
  await using host = await startHost();
  const right: StackInput = { directory: 'data', services: { a: sleeper, b: sleeper } };
  await host.apply('s', right);
  await host.untilReady('s');
  const before = [await host.status('s/a'), await host.status('s/b')];
  const refused = async (services: unknown): Promise<string> => {
    try {
      await host.apply('s', { directory: 'data', services } as StackInput);
    } catch (error) {
      expect(isInvalidError(error)).toBe(true);
      return (error as Error).message;
    }
    throw new Error('it was not refused');
  };
  expect(await refused({ a: { ...sleeper, comand: ['x'] }, b: sleeper })).toContain(
    'spec.services.a.comand: unknown field: did you mean command?',
  );
  expect(await refused({ a: { ...sleeper, dependsOn: ['b'] }, b: { ...sleeper, dependsOn: ['a'] } })).toContain(
    'spec.services.b.dependsOn[0]: services depend on each other in a circle: a → b → a; remove one of these',
  );
  expect(await refused({ a: { ...sleeper, dependsOn: ['bb'] }, b: sleeper })).toContain(
    'spec.services.a.dependsOn[0]: there is no service bb: did you mean b?',
  );
  expect(await refused({ a: { ...sleeper, files: { '../x': '' } }, b: sleeper })).toContain(
    'spec.services.a.files["../x"]: is outside directory',
  );
  expect(await refused({ a: { ...sleeper, files: { 'x/../f': '' } }, b: { ...sleeper, files: { f: '' } } })).toContain(
    'spec.services.b.files.f: the service a claims f too',
  );
  // Past the schema (another program wrote it): the stack stalls, and nothing is pruned or stopped.
  const wrong = stackDefinition.create({ id: 's', spec: right }).spec;
  await host.raw.updateWithConflicts(stackDefinition.pointer('s'), (draft) => {
    draft.spec = { ...wrong, services: { a: { command: ['sleep', '1'], comand: 1 } } } as never;
  });
  const stalled = await host.untilStack('s', (status) => condition(status, 'Stalled')?.status === 'True');
  expect(condition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'InvalidWorkload' });
  expect(condition(stalled, 'Ready')?.message).toContain('spec.services.a.comand: unknown field: did you mean command?');
  expect([await host.status('s/a'), await host.status('s/b')]).toEqual(before);
  await host.apply('s', right);
  await host.untilReady('s');
  expect([await host.status('s/a'), await host.status('s/b')]).toEqual(before);
});

test('a directory cannot move, and a relative one needs a folder', async () => {
  await using host = await startHost();
  await host.apply('s', { directory: 'data', services: { a: sleeper } });
  await host.untilReady('s');
  const before = await host.status('s/a');
  await host.apply('s', { directory: 'elsewhere', services: { a: sleeper } });
  const moved = await host.untilStack('s', (found) => condition(found, 'Stalled')?.status === 'True');
  expect(condition(moved, 'Ready')).toMatchObject({ reason: 'DirectoryChanged' });
  expect(condition(moved, 'Ready')?.message).toContain(
    `lives in ${join(host.folder, 'data')} and cannot move to ${join(host.folder, 'elsewhere')}`,
  );
  expect(await host.status('s/a')).toEqual(before);
  // Applied from another folder: it is the same stack and stays where it is.
  await host.apply('s', { directory: 'data', services: { a: sleeper } }, { annotations: { [baseDirectoryAnnotation]: '/elsewhere' } });
  await host.untilReady('s');
  expect(await host.status('s/a')).toEqual(before);
  await host.state.create(stackDefinition.create({ id: 'bare', spec: { directory: 'data', services: { a: sleeper } } }));
  const bare = await host.untilStack('bare', (found) => condition(found, 'Stalled')?.status === 'True');
  expect(condition(bare, 'Ready')?.message).toContain(`the annotation ${baseDirectoryAnnotation} is missing; write an absolute path`);
});

test('a steady stack writes nothing', async () => {
  await using host = await startHost({ pollMs: 50 });
  await host.apply('s', {
    directory: 'data',
    services: { a: { ...sleeper, files: { 'a.txt': 'a' }, ready: { command: ['true'], intervalMs: 20 } }, b: sleeper },
  });
  await host.untilReady('s');
  const revision = async (): Promise<number | undefined> => (await host.state.list(stackDefinition.kind())).revision;
  // What happened is still being recorded when the stack is ready; then nothing is written over many polls and checks.
  await eventually(host, 'the store to come to rest', async () => {
    const before = await revision();
    await host.environment.sleep(300);
    return (await revision()) === before;
  });
});

test('Windows is refused with a word', async () => {
  await using host = await startHost();
  const environment = { ...host.environment, processes: { ...host.environment.processes, platform: 'win32' } };
  expect(() => hostOperator({ environment })).toThrow('run it on Linux, macOS, or in WSL');
  try {
    hostOperator({ environment });
  } catch (error) {
    expect(isUnsupportedError(error)).toBe(true);
  }
});
