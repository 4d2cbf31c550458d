import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StackInput } from '../../src/host/index.ts';
import { processDefinition, requestRestart } from '../../src/host/index.ts';
import { alive, condition, eventually, port, startHost } from './support.ts';

const soon = { delayMs: 0 };
const sleeper: readonly ['sleep', string] = ['sleep', '1000'];
const service = (more: Partial<StackInput['services'][string]> = {}): StackInput['services'][string] => ({
  command: [...sleeper],
  ready: soon,
  ...more,
});

test('a killed process backs off, starts again, and counts one restart', async () => {
  await using host = await startHost();
  await host.apply('one', { directory: 'data', services: { main: service({ restart: { initialDelayMs: 50 } }) } });
  await host.untilReady('one');
  const { pid } = await host.status('one/main');
  const backOff = host.until('one/main', (status) => status.state === 'BackOff', 'backing off');
  process.kill(Number(pid), 'SIGKILL');
  expect(await backOff).toMatchObject({
    ready: false,
    reason: 'Exited',
    message: 'ended by SIGKILL',
    lastExit: { signal: 'SIGKILL' },
    backOffMs: 50,
  });
  const again = await host.until('one/main', (status) => status.state === 'Running' && status.pid !== pid);
  expect(again).toMatchObject({ ready: true, restarts: 1, lastExit: { text: 'ended by SIGKILL' } });
  await host.untilReady('one');
});

test('a crash loop tells the exit, the last line and the doubled wait, and takes nobody down with it', async () => {
  await using host = await startHost();
  await host.apply('loop', {
    directory: 'data',
    services: {
      good: service(),
      bad: service({
        command: ['sh', '-c', 'echo first; echo "cannot open the shop" >&2; exit 3'],
        restart: { initialDelayMs: 10, maxDelayMs: 40 },
      }),
    },
  });
  const bad = await host.until('loop/bad', (status) => status.restarts >= 4, 'restarted four times');
  expect(bad).toMatchObject({ ready: false, lastExit: { code: 3, text: 'exited with 3' }, lastOutput: 'cannot open the shop' });
  const backOff = await host.until('loop/bad', (status) => status.state === 'BackOff');
  expect(backOff).toMatchObject({ backOffMs: 40, message: 'exited with 3: cannot open the shop' });
  const status = await host.untilStack('loop', (stack) => condition(stack, 'Check-Ready')?.status === 'False');
  expect(condition(status, 'Check-Ready')?.message).toMatch(/^Processes\/loop\/bad: /);
  expect(await host.status('loop/good')).toMatchObject({ state: 'Running', restarts: 0 });
});

test('restart policies: what ended well is completed and ready, what must not come back has failed', async () => {
  await using host = await startHost();
  await host.apply('jobs', {
    directory: 'data',
    services: {
      done: service({ command: ['true'], restart: { policy: 'onFailure' } }),
      failed: service({ command: ['sh', '-c', 'echo no; exit 1'], restart: { policy: 'never' } }),
      retried: service({
        command: ['sh', '-c', 'test -e tried || { touch tried; exit 1; }'],
        restart: { policy: 'onFailure', initialDelayMs: 10 },
      }),
      after: service({ command: [...sleeper], dependsOn: ['done', 'retried'] }),
    },
  });
  expect(await host.until('jobs/done', (status) => status.state === 'Completed')).toMatchObject({
    ready: true,
    restarts: 0,
    lastExit: { code: 0 },
  });
  expect(await host.until('jobs/failed', (status) => status.state === 'Failed')).toMatchObject({
    ready: false,
    reason: 'Exited',
    message: 'exited with 1: no',
  });
  expect(await host.until('jobs/retried', (status) => status.state === 'Completed')).toMatchObject({ ready: true, restarts: 1 });
  await host.until('jobs/after', (status) => status.ready);
});

test('a changed command restarts that process alone, and so does a changed file that it names', async () => {
  await using host = await startHost();
  const services = (more: { readonly aCommand?: string; readonly text?: string; readonly aDepends?: boolean }): StackInput['services'] => ({
    a: service({ command: ['sleep', more.aCommand ?? '1000'], ...(more.aDepends && { dependsOn: ['b'] }) }),
    b: service({ files: { 'b.txt': more.text ?? 'one', 'quiet.txt': more.text ?? 'one' }, restartOn: ['b.txt'] }),
    c: service({ files: { 'c.txt': more.text ?? 'one' } }),
  });
  const pids = async (): Promise<readonly (number | undefined)[]> =>
    Promise.all(['a', 'b', 'c'].map(async (name) => (await host.status(`s/${name}`)).pid));
  await host.apply('s', { directory: 'data', services: services({}) });
  await host.untilReady('s');
  const [a1, b1, c1] = await pids();
  await host.apply('s', { directory: 'data', services: services({ aCommand: '2000' }) });
  await host.until('s/a', (status) => status.ready && status.pid !== a1);
  await host.untilReady('s');
  const [a2, b2, c2] = await pids();
  expect([b2, c2]).toEqual([b1, c1]);
  expect(alive(Number(a1))).toBe(false);
  await host.apply('s', { directory: 'data', services: services({ aCommand: '2000', text: 'two' }) });
  await host.until('s/b', (status) => status.ready && status.pid !== b1);
  await host.untilReady('s');
  const [a3, b3, c3] = await pids();
  expect([a3, c3]).toEqual([a2, c1]);
  expect(readFileSync(join(host.folder, 'data/c.txt'), 'utf8')).toBe('two');
  await host.apply('s', { directory: 'data', services: services({ aCommand: '2000', text: 'two', aDepends: true }) });
  await host.untilReady('s');
  expect((await host.state.get(processDefinition.pointer('s/a'))).spec.after).toEqual(['s/b']);
  expect(await pids()).toEqual([a3, b3, c3]);
  expect((await host.status('s/a')).restarts).toBe(0);
});

test('a requested restart takes one process, once', async () => {
  await using host = await startHost();
  await host.apply('s', { directory: 'data', services: { a: service(), b: service() } });
  await host.untilReady('s');
  const a = await host.status('s/a');
  const b = await host.status('s/b');
  await requestRestart(host.state, host.environment, { id: 's' }, 'a');
  const again = await host.until('s/a', (status) => status.ready && status.pid !== a.pid);
  expect(again.restarts).toBe(0);
  await host.untilReady('s');
  expect((await host.status('s/b')).pid).toBe(b.pid);
  expect((await host.status('s/a')).pid).toBe(again.pid);
  await expect(requestRestart(host.state, host.environment, { id: 's' }, 'aa')).rejects.toThrow(
    'the stack s has no service aa: did you mean a?; its services are a, b',
  );
  await requestRestart(host.state, host.environment, { id: 's' }, 'a');
  await host.until('s/a', (status) => status.ready && status.pid !== again.pid);
});

test('a removed service is taken down with its files and its output; the others stay', async () => {
  await using host = await startHost();
  const both: StackInput = { directory: 'data', services: { a: service(), b: service({ files: { 'deep/b.txt': 'b' } }) } };
  await host.apply('s', both);
  await host.untilReady('s');
  const a = await host.status('s/a');
  const b = await host.status('s/b');
  await host.apply('s', { directory: 'data', services: { a: service() } });
  await host.untilReady('s');
  expect(alive(Number(b.pid))).toBe(false);
  expect(existsSync(join(host.folder, 'data/deep'))).toBe(false);
  expect(existsSync(join(host.folder, 'data/.logs/s/b.log'))).toBe(false);
  expect(existsSync(join(host.folder, 'data/.logs/s/a.log'))).toBe(true);
  expect((await host.status('s/a')).pid).toBe(a.pid);
});

test('stopping means an empty group: what outlives its leader is killed, what ignores the signal too', async () => {
  await using host = await startHost();
  const stubborn = 'trap "" TERM; sleep 1000 & echo $! > child; while true; do sleep 0.05; done';
  await host.apply('s', {
    directory: 'data',
    services: {
      stubborn: service({ command: ['sh', '-c', stubborn], stop: { graceMs: 100 } }),
      orphans: service({ command: ['sh', '-c', 'trap "exit 0" TERM; (trap "" TERM; sleep 1000) & echo $! > orphan; wait'] }),
    },
  });
  await host.untilReady('s');
  const pids = await eventually(host, 'both children', () => {
    const read = ['child', 'orphan'].map((name) =>
      existsSync(join(host.folder, 'data', name)) ? Number(readFileSync(join(host.folder, 'data', name), 'utf8')) : 0,
    );
    return read.every((pid) => pid > 0) ? read : undefined;
  });
  expect(pids.every(alive)).toBe(true);
  const leaders = [(await host.status('s/stubborn')).pid, (await host.status('s/orphans')).pid].map(Number);
  await host.apply('s', { directory: 'data', services: { keep: service() } });
  await host.untilReady('s');
  for (const pid of [...pids, ...leaders]) await eventually(host, `process ${pid} to be gone`, () => !alive(pid) || isZombie(pid));
});

test('a zombie is nobody: it keeps no group alive', async () => {
  await using host = await startHost();
  // The shell becomes a program that never asks how its child ended.
  await host.apply('s', {
    directory: 'data',
    services: {
      a: service({ command: ['sh', '-c', 'sleep 0.01 & echo $! > zombie; exec sleep 1000'], stop: { graceMs: 600_000 } }),
      b: service(),
    },
  });
  await host.untilReady('s');
  const zombie = await eventually(host, 'a zombie', () => {
    const pid = existsSync(join(host.folder, 'data/zombie')) ? Number(readFileSync(join(host.folder, 'data/zombie'), 'utf8')) : 0;
    return pid > 0 && alive(pid) && isZombie(pid) ? pid : undefined;
  });
  const { pid } = await host.status('s/a');
  process.kill(Number(pid), 'SIGKILL');
  const again = await host.until('s/a', (status) => status.ready && status.pid !== pid);
  expect(again.restarts).toBe(1);
  await eventually(host, 'the first zombie to be gone, or to stay one', () => !alive(zombie) || isZombie(zombie));
  await host.remove('s');
});

test('a leader that leaves children behind is restarted only when they are gone', async () => {
  await using host = await startHost();
  const script = 'sleep 1000 & echo $! >> children; sleep 0.05; exit 1';
  await host.apply('s', {
    directory: 'data',
    services: { a: service({ command: ['sh', '-c', script], restart: { initialDelayMs: 10 } }) },
  });
  await host.until('s/a', (status) => status.restarts >= 3);
  const children = readFileSync(join(host.folder, 'data/children'), 'utf8').trim().split('\n').map(Number);
  expect(children.length).toBeGreaterThanOrEqual(3);
  expect(children.slice(0, -2).filter((pid) => alive(pid) && !isZombie(pid))).toEqual([]);
});

test('a stopped operator takes its processes with it, the last started first, and brings them back in order', async () => {
  await using host = await startHost();
  const tells = (name: string): StackInput['services'][string] =>
    service({
      command: [
        'sh',
        '-c',
        `trap 'echo ${name} down >> order; exit 0' TERM; echo ${name} up >> order; echo serving; while true; do sleep 0.02; done`,
      ],
      ready: { log: 'serving', intervalMs: 20 },
    });
  await host.apply('s', {
    directory: 'data',
    services: { z: tells('z'), y: { ...tells('y'), dependsOn: ['z'] }, x: { ...tells('x'), dependsOn: ['y'] } },
  });
  await host.untilReady('s');
  const order = (): readonly string[] => readFileSync(join(host.folder, 'data/order'), 'utf8').trim().split('\n');
  await eventually(host, 'all to have told', () => order().length === 3);
  await host.stop();
  expect(order()).toEqual(['z up', 'y up', 'x up', 'x down', 'y down', 'z down']);
  expect(await host.status('s/z')).toMatchObject({ state: 'Stopped', ready: false, reason: 'OperatorStopped' });
  // Nobody who looks now, or right after the next start, may take it for ready.
  expect(condition(await host.stackStatus('s'), 'Ready')).toMatchObject({ status: 'False', reason: 'OperatorStopped' });
  await host.startAgain();
  await host.untilReady('s');
  expect(await host.status('s/x')).toMatchObject({ ready: true });
  await eventually(host, 'all to have told again', () => order().length === 9);
  expect(order().slice(6)).toEqual(['z up', 'y up', 'x up']);
  expect(await host.status('s/x')).toMatchObject({ restarts: 0 });
});

test('an operator that left its processes is followed by one that adopts them', async () => {
  await using host = await startHost({ onShutdown: 'leave' });
  await host.apply('s', { directory: 'data', services: { a: service(), b: service({ restart: { initialDelayMs: 10 } }) } });
  await host.untilReady('s');
  const a = await host.status('s/a');
  const b = await host.status('s/b');
  await host.stop();
  expect([a, b].every(({ pid }) => alive(Number(pid)))).toBe(true);
  await host.startAgain({ onShutdown: 'stop' });
  await host.untilReady('s');
  expect(await host.status('s/a')).toEqual(a);
  process.kill(Number(b.pid), 'SIGKILL');
  const again = await host.until('s/b', (status) => status.ready && status.pid !== b.pid);
  expect(again).toMatchObject({ restarts: 1, lastExit: { text: 'unknown (adopted)' } });
  expect((await host.status('s/a')).pid).toBe(a.pid);
});

test('output is appended, rotated by copy and cut, and gone with its service', async () => {
  await using host = await startHost({ maxOutputBytes: 2_000, keptOutputs: 2 });
  await host.apply('s', {
    directory: 'data',
    services: { a: service({ command: ['sh', '-c', 'while true; do echo 0123456789012345678901234567890123456789; sleep 0.005; done'] }) },
  });
  await host.untilReady('s');
  const log = join(host.folder, 'data/.logs/s/a.log');
  await eventually(host, 'an earlier output', () => existsSync(`${log}.1`));
  expect(readFileSync(`${log}.1`, 'utf8').slice(0, 41)).toBe('0123456789012345678901234567890123456789\n');
  await host.remove('s');
  expect(existsSync(join(host.folder, 'data'))).toBe(false);
});

function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
}

test('readiness: a log line, a connection, a command; not ready again after three failures', async () => {
  await using host = await startHost();
  const server = `
    import { createServer } from 'node:http';
    import { existsSync } from 'node:fs';
    createServer((request, response) => { response.statusCode = existsSync('sick') ? 503 : 200; response.end(); }).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('port ' + process.env.PORT));`;
  const fast = { intervalMs: 20 };
  await host.apply('s', {
    directory: 'data',
    services: {
      web: {
        command: ['node', 'web.mjs'],
        environment: { PORT: port('web') },
        files: { 'web.mjs': server },
        ready: { http: `http://127.0.0.1:${port('web')}/`, ...fast },
      },
      line: service({
        command: ['sh', '-c', 'echo starting; sleep 0.1; echo "now serving 42"; sleep 1000'],
        ready: { log: { expression: 'serving \\d+$' }, ...fast },
      }),
      tcp: service({ ready: { tcp: port('web'), ...fast } }),
      command: service({ ready: { command: ['test', '-e', 'marker'], ...fast } }),
    },
  });
  await Promise.all(['s/web', 's/line', 's/tcp'].map((id) => host.until(id, (status) => status.ready)));
  expect(await host.status('s/command')).toMatchObject({ state: 'Starting', ready: false, reason: 'NotReady' });
  writeFileSync(join(host.folder, 'data/marker'), '');
  await host.until('s/command', (status) => status.ready);
  await host.untilReady('s');
  writeFileSync(join(host.folder, 'data/sick'), '');
  const sick = await host.until('s/web', (status) => !status.ready);
  expect(sick).toMatchObject({ state: 'Running', reason: 'NotReady', restarts: 0 });
  expect(sick.message).toMatch(/answered 503$/);
  await host.untilStack('s', (status) => condition(status, 'Ready')?.status === 'False');
});
