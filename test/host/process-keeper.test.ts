import { expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { ProcessIdentity } from '../../src/environment/index.ts';
import type { ProcessStatus } from '../../src/host/index.ts';
import { hostOperator, processDefinition, processStatusDefinition } from '../../src/host/index.ts';
import { SteadystateError } from '../../src/resource/index.ts';
import { createRuntime } from '../../src/runtime/index.ts';
import type { CoreState, State } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import type { ManualEnvironment } from '../../src/testing/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import { FakeMachine } from './fake-machine.ts';

interface World extends AsyncDisposable {
  readonly machine: FakeMachine;
  readonly environment: ManualEnvironment;
  readonly state: State;
  status(id?: string): Promise<ProcessStatus>;
  declare(more?: object, id?: string): Promise<void>;
  /** The operator is killed: it never writes again. */
  crash(): void;
  startAgain(onShutdown?: 'stop' | 'leave'): Promise<void>;
  stop(): Promise<void>;
  /** A write fails once, before it is applied. */
  failNextWrite(of: string): void;
}

async function world(options: { readonly onShutdown?: 'stop' | 'leave' } = {}): Promise<World> {
  const machine = new FakeMachine();
  const { processes, files, network } = machine;
  const environment = manualEnvironment({ processes, files, network });
  const store = memoryState({ environment });
  const state = wrapCore(store, { environment });
  let failing: string | undefined;
  let running: { readonly stop: AbortController; readonly ended: Promise<void>; readonly epoch: { dead: boolean } } | undefined;

  const start = async (onShutdown: 'stop' | 'leave' = 'stop'): Promise<void> => {
    const epoch = { dead: false };
    const stop = new AbortController();
    const runtime = createRuntime({ state: mortal(store, epoch), environment });
    // Only the processes: folders and files have tests of their own.
    hostOperator({ environment, onShutdown }).register({
      ...runtime,
      register: (controller) => void (controller.name === 'host-processes' && runtime.register(controller)),
    });
    running = { stop, epoch, ended: runtime.run(stop.signal) };
    await environment.settle();
  };

  /** A store that forgets a program that was killed: its calls never answer. */
  function mortal(core: CoreState, epoch: { readonly dead: boolean }): CoreState {
    const guard =
      (write: boolean, method: (...given: never[]) => Promise<unknown>) =>
      async (...given: never[]): Promise<unknown> => {
        if (epoch.dead) return new Promise(() => {});
        const [about] = given as unknown as [{ metadata?: { type: string }; type?: string }];
        if (write && failing !== undefined && (about.metadata?.type ?? about.type ?? '').startsWith(failing)) {
          failing = undefined;
          throw new SteadystateError('Unavailable', 'the disk is away');
        }
        const answer = await method.apply(core, given);
        return epoch.dead ? new Promise(() => {}) : answer;
      };
    const guarded = { ...core } as Record<string, unknown>;
    const writes = ['create', 'update', 'destroy'] as const;
    for (const name of [...writes, 'get', 'list', 'watch', 'watchKind', 'watchKindAggregated', 'watchKinds', 'watchNamespaces'] as const)
      guarded[name] = guard(writes.includes(name as never), core[name]?.bind(core) as never);
    return { ...guarded, capabilities: core.capabilities } as unknown as CoreState;
  }

  const stopAll = async (): Promise<void> => {
    running?.stop.abort();
    for (let turn = 0; turn < 4_000 && running !== undefined; turn++) {
      await environment.advance(20);
      if (await Promise.race([running.ended.then(() => true), environment.settle().then(() => false)])) break;
    }
    await running?.ended;
    running = undefined;
  };

  await start(options.onShutdown);
  return {
    machine,
    environment,
    state,
    status: async (id = 'a') => (await state.get(processStatusDefinition.pointer(id))).spec,
    async declare(more = {}, id = 'a') {
      const all = {
        command: ['run', id],
        directory: '/srv',
        environment: {},
        outputFile: `/srv/${id}.log`,
        ready: { delayMs: 0 },
        ...more,
      };
      const spec = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as typeof all;
      await state.modify(processDefinition.create({ id, spec }), (draft) => {
        draft.spec = processDefinition.validate(spec);
      });
      await environment.settle();
    },
    crash() {
      if (running === undefined) return;
      running.epoch.dead = true;
      machine.orphanAll();
      running = undefined;
    },
    startAgain: start,
    stop: stopAll,
    failNextWrite(of) {
      failing = of;
    },
    async [Symbol.asyncDispose]() {
      await stopAll();
      await store[Symbol.asyncDispose]();
    },
  };
}

test('nothing runs before it is on record', async () => {
  await using w = await world();
  const recorded: unknown[] = [];
  w.machine.onRelease = async ({ pid }: ProcessIdentity) => void recorded.push([pid, (await w.status()).pid, (await w.status()).state]);
  await w.declare();
  expect(recorded).toEqual([[100, 100, 'Starting']]);
  expect(await w.status()).toMatchObject({ state: 'Running', ready: true, pid: 100, bootId: 'boot-1', restarts: 0 });
  expect(w.machine.log).toEqual(['spawn 100 run a', 'release 100']);
});

test('a process whose record could not be written never runs, and is started anew', async () => {
  await using w = await world();
  w.failNextWrite('ProcessStatuses');
  await w.declare();
  await w.environment.advance(10);
  expect(w.machine.log).toEqual(['spawn 100 run a', 'abandon 100', 'exit 100', 'spawn 101 run a', 'release 101']);
  expect(await w.status()).toMatchObject({ pid: 101, restarts: 0, ready: true });
});

test('the wait doubles with each exit up to its limit, and starts anew after a minute of running', async () => {
  await using w = await world();
  await w.declare({ restart: { initialDelayMs: 100, maxDelayMs: 350 } });
  const waits: (number | undefined)[] = [];
  for (let count = 1; count <= 4; count++) {
    w.machine.exit(Number((await w.status()).pid), { code: 1 });
    await w.environment.settle();
    const { backOffMs, state, restarts } = await w.status();
    expect(state).toBe('BackOff');
    expect(restarts).toBe(count);
    waits.push(backOffMs);
    await w.environment.advance(Number(backOffMs) - 1);
    expect((await w.status()).state).toBe('BackOff');
    await w.environment.advance(1);
    expect(await w.status()).toMatchObject({ state: 'Running', ready: true });
  }
  expect(waits).toEqual([100, 200, 350, 350]);
  await w.environment.advance(59_000);
  w.machine.exit(Number((await w.status()).pid), { code: 1 });
  await w.environment.settle();
  expect((await w.status()).backOffMs).toBe(350);
  await w.environment.advance(60_400);
  w.machine.exit(Number((await w.status()).pid), { code: 1 });
  await w.environment.settle();
  expect((await w.status()).backOffMs).toBe(100);
});

test('how a process ended is not forgotten because it could not be written at once', async () => {
  await using w = await world();
  await w.declare();
  w.failNextWrite('ProcessStatuses');
  w.machine.exit(100, { code: 7 });
  await w.environment.advance(50);
  expect(await w.status()).toMatchObject({ state: 'BackOff', restarts: 1, lastExit: { code: 7, text: 'exited with 7' } });
});

test('a wall clock that jumps changes no wait', async () => {
  await using w = await world();
  await w.declare({ restart: { initialDelayMs: 1_000 } });
  w.machine.exit(100, { code: 1 });
  await w.environment.settle();
  w.environment.setNow(w.environment.now() + 86_400_000);
  await w.environment.advance(999);
  expect((await w.status()).state).toBe('BackOff');
  await w.environment.advance(1);
  expect((await w.status()).state).toBe('Running');
});

test('without a check, a second of running is ready', async () => {
  await using w = await world();
  await w.declare({ ready: undefined });
  await w.environment.advance(999);
  expect(await w.status()).toMatchObject({ state: 'Starting', ready: false });
  await w.environment.advance(1);
  expect(await w.status()).toMatchObject({ state: 'Running', ready: true });
});

test('stopping: the signal first, SIGKILL after the grace, and no restart before the group is empty', async () => {
  await using w = await world();
  await w.declare({ stop: { signal: 'SIGINT', graceMs: 1_000 } });
  const child = w.machine.addToGroup(100);
  w.machine.onSignal = () => 'ignores';
  await w.declare({ stop: { signal: 'SIGINT', graceMs: 1_000 }, command: ['run', 'b'] });
  await w.environment.advance(999);
  expect(w.machine.log.slice(2)).toEqual(['SIGINT 100']);
  expect(await w.status()).toMatchObject({ state: 'Stopping', ready: false, reason: 'Restarting' });
  await w.environment.advance(25);
  expect(w.machine.log.slice(2)).toEqual(['SIGINT 100', 'SIGKILL 100', 'exit 100', `exit ${child}`, 'spawn 102 run b', 'release 102']);
  expect(await w.status()).toMatchObject({ pid: 102, restarts: 0 });
});

test('stopping: what the leader leaves behind is killed at once, without waiting for the grace', async () => {
  await using w = await world();
  await w.declare({ stop: { graceMs: 60_000 } });
  const child = w.machine.addToGroup(100);
  w.machine.onSignal = (_signal, pid) => (pid === 100 ? 'ends' : 'ignores');
  await w.declare({ stop: { graceMs: 60_000 }, command: ['run', 'b'] });
  await w.environment.advance(50);
  expect(w.machine.log.slice(2)).toEqual(['SIGTERM 100', 'exit 100', 'SIGKILL 100', `exit ${child}`, 'spawn 102 run b', 'release 102']);
  w.machine.onSignal = () => 'ends';
});

test('a leader that ended by itself is not followed before its group is empty', async () => {
  await using w = await world();
  await w.declare({ restart: { initialDelayMs: 1 } });
  const child = w.machine.addToGroup(100);
  w.machine.exit(100, { code: 0 });
  await w.environment.advance(100);
  expect(w.machine.log.slice(2)).toEqual(['exit 100', 'SIGKILL 100', `exit ${child}`, 'spawn 102 run a', 'release 102']);
});

test('after a crash of the operator a living process is adopted, with no write and no signal', async () => {
  await using w = await world();
  await w.declare();
  const before = await w.state.get(processStatusDefinition.pointer('a'));
  w.crash();
  await w.startAgain();
  await w.environment.advance(10_000);
  expect(await w.state.get(processStatusDefinition.pointer('a'))).toEqual(before);
  expect(w.machine.log).toEqual(['spawn 100 run a', 'release 100']);
  w.machine.exit(100, { code: 0 });
  await w.environment.advance(500);
  expect(await w.status()).toMatchObject({ state: 'BackOff', restarts: 1, lastExit: { text: 'unknown (adopted)' } });
  await w.environment.advance(100);
  expect(await w.status()).toMatchObject({ state: 'Running', pid: 101 });
});

test('a crash between the record and the gate: nobody ran, so nothing is counted', async () => {
  await using w = await world();
  let crashed = false;
  w.machine.onRelease = async () => {
    if (crashed) return;
    crashed = true;
    w.crash();
    await new Promise(() => {});
  };
  await w.declare();
  expect(await w.status()).toMatchObject({ pid: 100, state: 'Starting' });
  expect(w.machine.pids).toEqual([]);
  await w.startAgain();
  expect(w.machine.log).toEqual(['spawn 100 run a', 'spawn 101 run a', 'release 101']);
  expect(await w.status()).toMatchObject({ pid: 101, restarts: 0, ready: true });
});

test('a process that died while nobody looked is started again, its exit unknown', async () => {
  await using w = await world();
  await w.declare();
  w.crash();
  w.machine.exit(100, { code: 0 });
  await w.startAgain();
  expect(await w.status()).toMatchObject({ state: 'BackOff', restarts: 1, lastExit: { text: 'unknown (adopted)' } });
  await w.environment.advance(100);
  expect(await w.status()).toMatchObject({ pid: 101, ready: true });
});

test('a pid that somebody else uses now is never touched', async () => {
  await using w = await world();
  await w.declare();
  w.crash();
  w.machine.reuse(100);
  await w.startAgain();
  await w.environment.advance(10_000);
  expect(w.machine.log.filter((line) => line.includes('SIG'))).toEqual([]);
  expect(w.machine.pids).toContain(100);
  expect(await w.status()).toMatchObject({ pid: 101, ready: true });
  await w.state.teardown(processDefinition.pointer('a'));
  await w.environment.advance(1_000);
  expect(w.machine.pids).toEqual([100]);
});

test('after a reboot everything starts in order, and nothing is counted as a restart', async () => {
  await using w = await world();
  await w.declare({ ready: { delayMs: 300 } }, 'db');
  await w.environment.advance(300);
  await w.declare({ after: ['db'] }, 'api');
  expect(await w.status('api')).toMatchObject({ ready: true });
  w.crash();
  w.machine.reboot();
  w.machine.log.length = 0;
  await w.startAgain();
  expect(w.machine.log).toEqual(['spawn 100 run db', 'release 100']);
  expect(await w.status('api')).toMatchObject({ state: 'Waiting', reason: 'WaitingForProcess', message: 'waits for db to be ready' });
  await w.environment.advance(300);
  expect(w.machine.log.slice(2)).toEqual(['spawn 101 run api', 'release 101']);
  expect(await w.status('api')).toMatchObject({ ready: true, restarts: 0 });
  expect(await w.status('db')).toMatchObject({ ready: true, restarts: 0 });
});

test('a crash does not wait for those before it', async () => {
  await using w = await world();
  await w.declare({}, 'db');
  await w.declare({ after: ['db'], restart: { initialDelayMs: 10 } }, 'api');
  w.machine.diagnosis = 'the program is gone';
  w.machine.exit(100, { code: 1 });
  await w.environment.settle();
  w.machine.diagnosis = undefined;
  w.machine.exit(101, { code: 1 });
  await w.environment.advance(10);
  expect(await w.status('api')).toMatchObject({ state: 'Running', ready: true });
});

test('a back-off goes on over a crash of the operator: the whole wait, once', async () => {
  await using w = await world();
  await w.declare({ restart: { initialDelayMs: 5_000 } });
  w.machine.exit(100, { code: 1 });
  await w.environment.advance(4_000);
  w.crash();
  await w.startAgain();
  await w.environment.advance(4_999);
  expect((await w.status()).state).toBe('BackOff');
  await w.environment.advance(1);
  expect(await w.status()).toMatchObject({ state: 'Running', restarts: 1 });
});

test('an exit that is not one to come back from is kept over a crash of the operator', async () => {
  await using w = await world();
  await w.declare({ restart: { policy: 'onFailure' } }, 'done');
  await w.declare({ restart: { policy: 'never' } }, 'failed');
  w.machine.exit(100, { code: 0 });
  w.machine.exit(101, { code: 9 });
  await w.environment.settle();
  expect(await w.status('done')).toMatchObject({ state: 'Completed', ready: true, restarts: 0 });
  expect(await w.status('failed')).toMatchObject({ state: 'Failed', ready: false, message: 'exited with 9' });
  w.crash();
  await w.startAgain();
  await w.environment.advance(60_000);
  expect(w.machine.pids).toEqual([]);
  // A new declaration is a new beginning.
  await w.declare({ restart: { policy: 'never' }, command: ['other'] }, 'failed');
  expect(await w.status('failed')).toMatchObject({ state: 'Running', ready: true });
});

test('a taken port is waited for, and what cannot start is tried again after its wait', async () => {
  await using w = await world();
  w.machine.takenPorts.add(8080);
  await w.declare({ ports: { web: 8080 } });
  expect(await w.status()).toMatchObject({ state: 'Waiting', reason: 'PortTaken' });
  await w.environment.advance(5_000);
  expect(w.machine.log).toEqual([]);
  w.machine.takenPorts.clear();
  w.machine.diagnosis = 'the program run was not found';
  await w.environment.advance(1_000);
  expect(await w.status()).toMatchObject({
    state: 'BackOff',
    reason: 'CannotStart',
    message: 'the program run was not found',
    restarts: 0,
  });
  w.machine.diagnosis = undefined;
  await w.environment.advance(1_000);
  expect(await w.status()).toMatchObject({ state: 'Running', ready: true, restarts: 0 });
});

test('taking down a process that is waiting, backing off or stopping leaves nothing', async () => {
  await using w = await world();
  await w.declare({ restart: { initialDelayMs: 60_000 } }, 'backing');
  w.machine.exit(100, { code: 1 });
  w.machine.takenPorts.add(1);
  await w.declare({ ports: { x: 1 } }, 'waiting');
  await w.declare({}, 'running');
  w.machine.content.set('/srv/running.log', 'text');
  await w.environment.settle();
  for (const id of ['backing', 'waiting', 'running']) {
    await w.state.teardown(processDefinition.pointer(id));
    await w.environment.advance(100);
    expect((await w.state.get(processDefinition.pointer(id))).metadata.finalizers).toEqual([]);
  }
  expect((await w.state.list(processStatusDefinition.kind())).items).toEqual([]);
  expect(w.machine.pids).toEqual([]);
  expect([...w.machine.content.keys()]).toEqual([]);
});

test('a resource that was removed past its finalizer takes its process with it', async () => {
  await using w = await world();
  await w.declare();
  await w.state.removeFinalizer(processDefinition.pointer('a'), 'host-processes');
  await w.state.destroy(processDefinition.pointer('a'));
  await w.environment.advance(100);
  expect(w.machine.pids).toEqual([]);
  expect((await w.state.list(processStatusDefinition.kind())).items).toEqual([]);
});

test('stopping the operator stops the last started first, one after the other; leaving leaves', async () => {
  const w = await world();
  await w.declare({}, 'a');
  await w.declare({}, 'b');
  await w.declare({}, 'c');
  w.machine.log.length = 0;
  await w.stop();
  expect(w.machine.log).toEqual(['SIGTERM 102', 'exit 102', 'SIGTERM 101', 'exit 101', 'SIGTERM 100', 'exit 100']);
  expect(await w.status('b')).toMatchObject({ state: 'Stopped', ready: false, restarts: 0 });
  expect((await w.status('b')).pid).toBeUndefined();
  await w.startAgain('leave');
  expect(w.machine.pids).toEqual([103, 104, 105]);
  await w.stop();
  expect(w.machine.pids).toEqual([103, 104, 105]);
  await w[Symbol.asyncDispose]();
});

test('a wall clock that jumps changes no order: the last started is stopped first, and those that were adopted last of all', async () => {
  const w = await world({ onShutdown: 'leave' });
  await w.declare({}, 'a');
  await w.declare({}, 'b');
  await w.stop();
  await w.startAgain('stop');
  w.environment.setNow(w.environment.now() - 86_400_000);
  await w.declare({}, 'c');
  w.environment.setNow(w.environment.now() - 86_400_000);
  await w.declare({}, 'd');
  w.machine.log.length = 0;
  await w.stop();
  expect(w.machine.log.filter((line) => line.startsWith('SIG'))).toEqual(['SIGTERM 103', 'SIGTERM 102', 'SIGTERM 101', 'SIGTERM 100']);
  await w[Symbol.asyncDispose]();
});

test('a restart that is asked for happens once, also over a crash of the operator', async () => {
  await using w = await world();
  await w.declare({ restartAt: 'first' });
  expect(w.machine.pids).toEqual([100]);
  await w.declare({ restartAt: 'second' });
  await w.environment.advance(100);
  expect(w.machine.pids).toEqual([101]);
  w.crash();
  await w.startAgain();
  await w.environment.advance(1_000);
  expect(w.machine.pids).toEqual([101]);
  // The wish is taken back: that is no wish.
  await w.declare({});
  await w.environment.advance(1_000);
  expect(w.machine.pids).toEqual([101]);
});

test('that an adopted process cannot be looked at for a while is no reason not to see its end', async () => {
  await using w = await world({ onShutdown: 'leave' });
  await w.declare();
  w.crash();
  await w.startAgain('leave');
  await w.environment.advance(1_000);
  const { inspect } = w.machine.processes;
  const port = w.machine.processes as { inspect: typeof inspect };
  port.inspect = async () => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
  };
  await w.environment.advance(2_000);
  port.inspect = inspect;
  w.machine.exit(100, { code: 3 });
  await w.environment.advance(1_000);
  expect(await w.status()).toMatchObject({ restarts: 1, pid: 101, lastExit: { text: 'unknown (adopted)' } });
});

test('a resource that was removed past its finalizer while no operator ran takes its process with it', async () => {
  await using w = await world();
  await w.declare();
  w.crash();
  const pointer = processDefinition.pointer('a');
  await w.state.removeFinalizer(pointer, 'host-processes');
  await w.state.teardown(pointer);
  await w.state.destroy(pointer);
  await w.startAgain();
  await w.environment.advance(1_000);
  expect(w.machine.pids).toEqual([]);
  await expect(w.status()).rejects.toThrow('does not exist');
});

test('an output that cannot be read for a while does not end the check of it', async () => {
  await using w = await world();
  w.machine.content.set('/srv/a.log', '');
  await w.declare({ ready: { log: 'up' } });
  const { readRange } = w.machine.files;
  let failures = 0;
  w.machine.readRange = async (...given) => {
    if (failures++ < 3) throw Object.assign(new Error('EIO: read'), { code: 'EIO' });
    return readRange(...given);
  };
  w.machine.content.set('/srv/a.log', 'we are up');
  await w.environment.advance(5_000);
  expect([failures > 3, (await w.status()).ready]).toEqual([true, true]);
});
