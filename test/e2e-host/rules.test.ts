import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackExtra, StackInput } from '../../src/host/index.ts';
import {
  directoryDefinition,
  fileDefinition,
  fileStatusDefinition,
  hostDefinitions,
  processDefinition,
  processStatusDefinition,
  stackStatusDefinition,
} from '../../src/host/index.ts';
import type { Host } from './support.ts';
import { alive, condition, eventually, everything, port, startHost } from './support.ts';

type Service = StackInput['services'][string];

const sleeper: Service = { command: ['sleep', '1000'], ready: { delayMs: 0 } };

/** A literal that a stack writes with two dollars. */
const literal = (text: string): string => `$\${${text}}`;

const textOf = (host: Host, path: string): string => {
  const file = join(host.folder, 'data', path);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

/** `state, parent, group` of a process as the system tells it. */
function statOf(pid: number): { readonly state: string; readonly parent: number; readonly group: number; readonly session: number } {
  const [state = '', parent, group, session] = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return { state, parent: Number(parent), group: Number(group), session: Number(session) };
}

/** Dead; whether an orphan is reaped is up to the first process of the machine. */
function isGone(pid: number): boolean {
  try {
    return /[ZX]/.test(statOf(pid).state);
  } catch {
    return true;
  }
}

test('words reach the program as they are written: no shell, ports in their places, two dollars are one', async () => {
  await using host = await startHost();
  const words = ['$(date)', '`id`', '*', '~', '$HOME', '"quoted"', "it's", 'a;b|c&d', '', 'back\\slash', 'two\nlines', literal('HOME')];
  const script = 'for word; do printf "%s\\0" "$word"; done > words; env -0 > variables; exec sleep 1000';
  await host.apply('s', {
    directory: 'data',
    services: {
      a: {
        command: ['sh', '-c', script, 'name', ...words, `at ${port('web')}`],
        environment: { PORT: port('web'), NUMBER: 1, FRACTION: 0.5, YES: true, TEXT: literal('PORT'), SPACE: ' x ' },
        files: { 'kept.txt': `${port('web')} ${literal('x')}`, 'kept.json': { text: port('web') } },
        ready: { command: ['test', '-s', 'variables'], intervalMs: 20 },
      },
    },
  });
  const { extra } = await host.untilReady('s');
  const web = String((extra as StackExtra).ports?.web);
  const said = [...words.slice(0, -1), literal('HOME').slice(1), `at ${web}`];
  expect(textOf(host, 'words').split('\0').slice(0, -1)).toEqual(said);
  const variables = new Map(
    textOf(host, 'variables')
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const),
  );
  const expected = { PORT: web, NUMBER: '1', FRACTION: '0.5', YES: 'true', TEXT: literal('PORT').slice(1), SPACE: ' x ' };
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, variables.get(name)]))).toEqual(expected);
  expect(textOf(host, 'kept.txt')).toBe(`${port('web')} ${literal('x')}`);
  expect(textOf(host, 'kept.json')).toBe(`{\n  "text": "${port('web')}"\n}\n`);
});

test('a process leads a group of its own, and writes to a file: it outlives an operator that leaves', async () => {
  await using host = await startHost({ onShutdown: 'leave' });
  const script = 'while true; do echo tick; sleep 0.02; done';
  await host.apply('s', { directory: 'data', services: { a: { command: ['sh', '-c', script], ready: { log: 'tick', intervalMs: 20 } } } });
  await host.untilReady('s');
  const pid = Number((await host.status('s/a')).pid);
  expect(statOf(pid).group).toBe(pid);
  await host.stop();
  const lines = (): number => textOf(host, '.logs/s/a.log').split('\n').length;
  const before = lines();
  await eventually(host, 'more output', () => lines() > before + 3);
  await host.startAgain({ onShutdown: 'stop' });
  await host.untilReady('s');
  expect(Number((await host.status('s/a')).pid)).toBe(pid);
});

test('an output that is rotated under its writer: the same process goes on, at the beginning of the file, and loses little', async () => {
  await using host = await startHost({ maxOutputBytes: 20_000, keptOutputs: 3, pollMs: 60 });
  const script = 'i=0; while true; do i=$((i+1)); echo "line $i of the writer"; done';
  await host.apply('s', { directory: 'data', services: { a: { command: ['sh', '-c', `${script}`], ready: { delayMs: 0 } } } });
  await host.untilReady('s');
  const { pid } = await host.status('s/a');
  await eventually(host, 'three rotations', () => existsSync(join(host.folder, 'data/.logs/s/a.log.3')));
  process.kill(-Number(pid), 'SIGSTOP');
  // What is copied already may be not cut yet.
  await eventually(host, 'the end of a rotation that has begun', () => statSync(join(host.folder, 'data/.logs/s/a.log')).size <= 20_000);
  const outputs = ['.3', '.2', '.1', ''].map((end) => textOf(host, `.logs/s/a.log${end}`));
  process.kill(-Number(pid), 'SIGCONT');
  expect((await host.status('s/a')).pid).toBe(pid);
  expect((await host.status('s/a')).restarts).toBe(0);
  let last = 0;
  for (const [index, output] of outputs.entries()) {
    // A writer that kept its place would leave a hole of zeros before what it writes next.
    expect(output).not.toContain('\0');
    // A cut may fall into a line: the first and the last line of a file may be parts.
    for (const line of output.split('\n').slice(1, -1)) {
      const number = Number(/^line (\d+) of the writer$/.exec(line)?.[1]);
      expect(number, `${line} after ${last} in output ${index}`).toBeGreaterThan(last);
      last = number;
    }
  }
  expect(last).toBeGreaterThan(1000);
  await host.remove('s');
  expect(await everything(host)).toEqual([]);
});

test('a child in a session of its own is out of reach: it is neither stopped nor waited for', async () => {
  await using host = await startHost();
  const script = 'setsid sh -c "echo \\$\\$ > own; exec sleep 1000" & sleep 1000 & echo $! > child; wait';
  await host.apply('s', {
    directory: 'data',
    services: { a: { command: ['sh', '-c', script], ready: { command: ['test', '-s', 'own'], intervalMs: 20 } } },
  });
  await host.untilReady('s');
  const own = Number(textOf(host, 'own'));
  const child = Number(textOf(host, 'child'));
  try {
    const { pid } = await host.status('s/a');
    expect(statOf(own).session).toBe(own);
    expect(statOf(child).group).toBe(pid);
    await host.remove('s');
    expect(alive(own)).toBe(true);
    await eventually(host, 'the child of the group to be gone', () => isGone(child));
  } finally {
    process.kill(own, 'SIGKILL');
  }
});

test.each<[NonNullable<Service['restart']>['policy'], string, string, { readonly ready: boolean; readonly restarts: number }]>([
  ['never', 'exit 0', 'Completed', { ready: true, restarts: 0 }],
  ['never', 'exit 3', 'Failed', { ready: false, restarts: 0 }],
  ['never', 'kill -9 $$', 'Failed', { ready: false, restarts: 0 }],
  ['onFailure', 'exit 0', 'Completed', { ready: true, restarts: 0 }],
  ['onFailure', 'test -e twice && exit 0; test -e once && touch twice; touch once; exit 3', 'Completed', { ready: true, restarts: 2 }],
  ['onFailure', 'test -e once && exit 0; touch once; kill -9 $$', 'Completed', { ready: true, restarts: 1 }],
])('restart policy %s after %s: %s', async (policy, script, state, more) => {
  await using host = await startHost();
  await host.apply('s', {
    directory: 'data',
    services: { a: { command: ['sh', '-c', script], restart: { policy: policy as 'never', initialDelayMs: 10 } } },
  });
  const status = await host.until('s/a', (found) => found.state === state, state);
  expect(status).toMatchObject(more);
  expect(status.pid).toBeUndefined();
  const told = await host.untilStack('s', (stack) => condition(stack, 'Ready')?.status === (more.ready ? 'True' : 'False'));
  if (!more.ready) expect(condition(told, 'Ready')?.message).toContain('Processes/s/a');
  // It stays so over a new start of the operator.
  await host.stop();
  await host.startAgain();
  await host.until('s/a', (found) => found.state === state && found.ready === more.ready);
  expect((await host.status('s/a')).restarts).toBe(more.restarts);
});

test.each<[string]>([['exit 0'], ['exit 3']])('restart policy always after %s: again and again', async (script) => {
  await using host = await startHost();
  await host.apply('s', {
    directory: 'data',
    services: { a: { command: ['sh', '-c', script], restart: { policy: 'always', initialDelayMs: 5, maxDelayMs: 10 } } },
  });
  const status = await host.until('s/a', ({ restarts }) => restarts >= 3);
  expect(status).toMatchObject({ ready: false, lastExit: { text: `exited with ${script.slice(5)}` } });
});

test('checks that hang end at their limit, one at a time, with their whole group; the others go on', async () => {
  await using host = await startHost();
  const hangs = createServer();
  await new Promise<void>((resolve) => hangs.listen(0, '127.0.0.1', resolve));
  const { port: silent } = hangs.address() as { port: number };
  const fast = { intervalMs: 10, limitMs: 150 };
  const check = 'echo "begin $$" >> checks; sleep 1000 & echo "child $!" >> checks; wait';
  try {
    await host.apply('s', {
      directory: 'data',
      services: {
        command: { ...sleeper, ready: { command: ['sh', '-c', check], ...fast } },
        http: { ...sleeper, ready: { http: `http://127.0.0.1:${silent}/`, ...fast } },
        free: sleeper,
      },
    });
    await host.until('s/free', ({ ready }) => ready);
    const told = async (id: string, words: RegExp): Promise<void> => {
      const status = await host.until(id, ({ message }) => words.test(message));
      expect(status).toMatchObject({ ready: false, reason: 'NotReady', restarts: 0 });
    };
    await told('s/command', /the check sh did not end within 150 ms/);
    await told('s/http', /no answer|did not|within 150 ms|time/i);
    const pids = (word: string): readonly number[] =>
      [...textOf(host, 'checks').matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map((found) => Number(found[1]));
    await eventually(host, 'several checks', () => pids('child').length >= 4);
    // Only the newest may live: each begins when the one before is gone, and its children with it.
    const [begun, children] = [pids('begin'), pids('child')];
    for (const pid of [...begun.slice(0, -2), ...children.slice(0, -2)]) expect(isGone(pid), `check ${pid}`).toBe(true);
    await host.remove('s');
    for (const pid of [...pids('begin'), ...pids('child')]) await eventually(host, `check ${pid} to be gone`, () => isGone(pid));
  } finally {
    hangs.close();
  }
});

test('a changed variable restarts that process alone; a changed stop, check or restart policy restarts nothing', async () => {
  await using host = await startHost();
  const services = (more: Partial<Service> = {}): StackInput['services'] => ({ a: { ...sleeper, ...more }, b: sleeper });
  const apply = async (more: Partial<Service>): Promise<readonly (number | undefined)[]> => {
    await host.apply('s', { directory: 'data', services: services(more) });
    await host.untilReady('s');
    return [(await host.status('s/a')).pid, (await host.status('s/b')).pid];
  };
  const [a, b] = await apply({});
  const [other, same] = await apply({ environment: { A: 'changed' } });
  expect(other).not.toBe(a);
  expect(same).toBe(b);
  const more: readonly Partial<Service>[] = [
    { stop: { signal: 'SIGINT', graceMs: 100 } },
    { restart: { policy: 'onFailure' } },
    { ready: { command: ['true'] } },
    { dependsOn: ['b'] },
    { files: { 'new.txt': 'x' } },
  ];
  let all: Partial<Service> = { environment: { A: 'changed' } };
  for (const change of more) {
    all = { ...all, ...change };
    expect(await apply(all), Object.keys(change).join()).toEqual([other, same]);
  }
  // The new way to stop counts at once.
  expect((await host.state.get(processDefinition.pointer('s/a'))).spec.stop).toEqual({ signal: 'SIGINT', graceMs: 100 });
});

test('a stack tells its phases in their order, and each status belongs to the controller that writes it', async () => {
  await using host = await startHost();
  await host.apply('s', { directory: 'data', services: { a: { ...sleeper, files: { 'a.txt': 'a' } } } });
  const { conditions } = await host.untilReady('s');
  expect(conditions.map(({ type }) => type).filter((type) => !['Ready', 'Reconciling', 'Stalled'].includes(type))).toEqual([
    'Dependencies',
    'Files',
    'Processes',
    'Check-Ready',
    'Complete',
  ]);
  const ownerOf = async (definition: { pointer(id: string): Parameters<Host['state']['get']>[0] }, id: string): Promise<string> =>
    (await host.state.get(definition.pointer(id))).metadata.owner;
  expect(await ownerOf(stackStatusDefinition, 's')).toBe('host-stacks');
  expect(await ownerOf(fileStatusDefinition, 's/a.txt')).toBe('host-files');
  expect(await ownerOf(processStatusDefinition, 's/a')).toBe('host-processes');
  for (const [definition, id] of [
    [directoryDefinition, 's'],
    [fileDefinition, 's/a.txt'],
    [processDefinition, 's/a'],
  ] as const)
    expect(await ownerOf(definition, id)).toBe('host-stacks');
  expect(hostDefinitions.filter(({ type }) => !type.endsWith('.host.steadystate.dev')).map(({ type }) => type)).toEqual([
    'Events.steadystate.dev',
  ]);
});

test('a program that somebody spoils while it runs is put right, and starts again', async () => {
  await using host = await startHost();
  await host.apply('s', {
    directory: 'data',
    services: {
      a: {
        command: ['./run.sh'],
        files: { 'run.sh': { content: '#!/bin/sh\necho up\nexec sleep 1000\n', mode: '0755' } },
        ready: { log: 'up', intervalMs: 20 },
        restart: { initialDelayMs: 10, maxDelayMs: 20 },
      },
      b: sleeper,
    },
  });
  await host.untilReady('s');
  const before = await host.status('s/a');
  writeFileSync(join(host.folder, 'data/run.sh'), '#!/no/such/program\n');
  process.kill(Number(before.pid), 'SIGKILL');
  const again = await host.until('s/a', ({ ready, pid }) => ready && pid !== before.pid);
  expect(textOf(host, 'run.sh')).toBe('#!/bin/sh\necho up\nexec sleep 1000\n');
  expect(again.restarts).toBeGreaterThanOrEqual(1);
  expect((await host.status('s/b')).restarts).toBe(0);
  expect(readdirSync(join(host.folder, 'data')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
