import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { FileStatus, StackInput } from '../../src/host/index.ts';
import { fileStatusDefinition, listLeftovers, stackDirectory, stackOutputs } from '../../src/host/index.ts';
import { eventDefinition } from '../../src/workload/index.ts';
import type { Host } from './support.ts';
import { condition, eventually, everything, startHost, withPatience } from './support.ts';

const sleeper: StackInput['services'][string] = { command: ['sleep', '1000'], ready: { delayMs: 0 } };

const untilFile = async (host: Host, id: string, holds: (status: FileStatus) => boolean): Promise<FileStatus> => {
  const pointer = fileStatusDefinition.pointer(id);
  return (
    await withPatience(`file ${id} as awaited`, host, (signal) =>
      host.state.watchFor(pointer, { condition: ({ spec }) => holds(spec) }, { signal }),
    )
  ).spec;
};

// The poll is far away, so that what is put right here was told by a watch.
test('what is changed on disk is put right: content, mode, a link, a file that is gone', async () => {
  await using host = await startHost({ pollMs: 600_000 });
  await host.apply('s', {
    directory: 'data',
    services: { a: { ...sleeper, files: { 'a.txt': 'as declared', 'run.sh': { content: '#!/bin/sh\n', mode: '0750' } } } },
  });
  await host.untilReady('s');
  const path = join(host.folder, 'data/a.txt');
  const isRight = (): boolean =>
    existsSync(path) && lstatSync(path).isFile() && readFileSync(path, 'utf8') === 'as declared' && (statSync(path).mode & 0o777) === 0o644;
  expect(statSync(join(host.folder, 'data/run.sh')).mode & 0o777).toBe(0o750);
  const spoil: readonly (() => void)[] = [
    () => writeFileSync(path, 'edited'),
    () => chmodSync(path, 0o600),
    () => unlinkSync(path),
    () => {
      unlinkSync(path);
      symlinkSync('/etc/hostname', path);
    },
  ];
  for (const [index, change] of spoil.entries()) {
    change();
    const status = await untilFile(host, 's/a.txt', ({ corrections, state }) => corrections > index && state === 'Written');
    expect(status).toMatchObject({ ready: true });
    expect(isRight()).toBe(true);
  }
  expect(readFileSync('/etc/hostname', 'utf8')).not.toBe('as declared');
});

test('a whole folder that is gone comes back', async () => {
  await using host = await startHost();
  await host.apply('s', { directory: 'data', services: { a: { ...sleeper, files: { 'lib/deep/a.txt': 'a', 'lib/b.txt': 'b' } } } });
  await host.untilReady('s');
  rmSync(join(host.folder, 'data/lib'), { recursive: true });
  await eventually(
    host,
    'both files',
    () => existsSync(join(host.folder, 'data/lib/deep/a.txt')) && existsSync(join(host.folder, 'data/lib/b.txt')),
  );
  await host.remove('s');
  expect(readdirSync(host.folder)).toEqual([]);
});

test('what services wrote stays, and is told', async () => {
  const leftovers: string[] = [];
  await using host = await startHost({ onLeftovers: ({ directory, names }) => void leftovers.push(`${directory}: ${names.join(' ')}`) });
  await host.apply('s', {
    directory: 'data',
    services: {
      a: {
        command: ['sh', '-c', 'mkdir -p made && echo 1 > made/data.txt && exec sleep 1000'],
        files: { 'made/a.txt': 'a' },
        ready: { command: ['test', '-e', 'made/data.txt'], intervalMs: 20 },
      },
    },
  });
  await host.untilReady('s');
  const directory = await stackDirectory(host.state, { id: 's' });
  expect(directory).toBe(join(host.folder, 'data'));
  expect(await stackOutputs(host.state, { id: 's' }, 'a')).toMatchObject([{ service: 'a', file: join(host.folder, 'data/.logs/s/a.log') }]);
  await host.remove('s');
  expect(leftovers).toEqual([`${directory}/made: data.txt`, `${directory}: made`]);
  expect(await listLeftovers(host.environment.files, String(directory))).toEqual(['made/', 'made/data.txt']);
  expect(await everything(host)).toEqual([]);
  // Recorded, for whoever asks later.
  const { items } = await host.state.list(eventDefinition.kind());
  expect(items.map(({ spec }) => spec.note)).toContain(`left in place in ${directory}: made`);
});

test('a folder that was there before is kept, and a file that was there is kept under another name', async () => {
  await using host = await startHost();
  mkdirSync(join(host.folder, 'mine'));
  writeFileSync(join(host.folder, 'mine/same.txt'), 'same');
  writeFileSync(join(host.folder, 'mine/other.txt'), 'written by a person');
  await host.apply('s', { directory: 'mine', services: { a: { ...sleeper, files: { 'same.txt': 'same', 'other.txt': 'declared' } } } });
  await host.untilReady('s');
  expect(readFileSync(join(host.folder, 'mine/other.txt'), 'utf8')).toBe('declared');
  expect(readFileSync(join(host.folder, 'mine/other.txt.orig'), 'utf8')).toBe('written by a person');
  await host.remove('s');
  expect(readdirSync(join(host.folder, 'mine'))).toEqual(['other.txt.orig']);
});

test('two stacks that claim one path: the second is told, and the first is left alone', async () => {
  await using host = await startHost();
  const stack = (content: string): StackInput => ({
    directory: 'data',
    services: { a: { ...sleeper, files: { 'a.txt': content } }, free: sleeper },
  });
  await host.apply('first', stack('first'));
  await host.untilReady('first');
  await host.apply('second', stack('second'));
  const status = await untilFile(host, 'second/a.txt', ({ state }) => state === 'Failed');
  expect(status).toMatchObject({ reason: 'PathTaken', ready: false });
  expect(status.message).toContain('is declared by Files.host.steadystate.dev/default/first/a.txt too');
  await host.until('second/free', ({ ready }) => ready);
  const stackStatus = await host.untilStack('second', (found) => condition(found, 'Files')?.reason === 'FilesNotReady');
  expect(condition(stackStatus, 'Ready')?.message).toContain('Files/second/a.txt: PathTaken');
  await host.remove('second');
  expect(readFileSync(join(host.folder, 'data/a.txt'), 'utf8')).toBe('first');
  await host.untilReady('first');
});

test('a link that leads out of the directory is not followed', async () => {
  await using host = await startHost();
  mkdirSync(join(host.folder, 'data'));
  mkdirSync(join(host.folder, 'outside'));
  symlinkSync(join(host.folder, 'outside'), join(host.folder, 'data/lib'));
  await host.apply('s', { directory: 'data', services: { a: { ...sleeper, files: { 'lib/a.txt': 'a' } }, free: sleeper } });
  await host.until('s/free', ({ ready }) => ready);
  const status = await host.untilStack('s', (found) => condition(found, 'Ready')?.message.includes('OutsideDirectory') === true);
  expect(condition(status, 'Ready')?.message).toContain(`a link in its path leads to ${join(host.folder, 'outside')}; remove the link`);
  expect(readdirSync(join(host.folder, 'outside'))).toEqual([]);
});

test('a folder in the place of a file, and a file in the place of a folder, are told and left alone', async () => {
  await using host = await startHost();
  mkdirSync(join(host.folder, 'data/a.txt'), { recursive: true });
  writeFileSync(join(host.folder, 'data/lib'), 'precious');
  await host.apply('s', {
    directory: 'data',
    services: { a: { ...sleeper, files: { 'a.txt': 'a' } }, b: { ...sleeper, files: { 'lib/b.txt': 'b' } }, free: sleeper },
  });
  await host.until('s/free', ({ ready }) => ready);
  const status = await host.untilStack('s', (found) => {
    const message = condition(found, 'Ready')?.message ?? '';
    return message.includes('PathIsFolder') && message.includes('NotAFolder');
  });
  expect(condition(status, 'Ready')?.message).toContain('Files/s/a.txt: PathIsFolder');
  expect(readFileSync(join(host.folder, 'data/lib'), 'utf8')).toBe('precious');
  rmSync(join(host.folder, 'data/a.txt'), { recursive: true });
  rmSync(join(host.folder, 'data/lib'));
  await host.untilReady('s');
});
