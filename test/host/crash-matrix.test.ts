import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { Environment } from '../../src/environment/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { fileDefinition, fileStatusDefinition, hostOperator, processDefinition, processStatusDefinition } from '../../src/host/index.ts';
import { createRuntime } from '../../src/runtime/index.ts';
import type { CoreState } from '../../src/state/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { manualEnvironment } from '../../src/testing/index.ts';
import { FakeMachine } from './fake-machine.ts';

/** One life of the operator, which ends before or after one of its effects. From then on its calls never answer. */
class Life {
  dead = false;
  effects = 0;
  readonly #cut: number;
  /** @param cut even: before effect cut / 2, odd: after it; absent: never */
  constructor(cut = Number.POSITIVE_INFINITY) {
    this.#cut = cut;
  }

  /** `target` with the named methods counted as effects, and all methods silent after the end. */
  mortal<Target extends object>(target: Target, effects: readonly (keyof Target)[], onEnd: () => void): Target {
    return new Proxy(target, {
      get: (_target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== 'function') return value;
        return async (...given: unknown[]): Promise<unknown> => {
          const effect = effects.includes(name as keyof Target) ? this.effects++ : undefined;
          if (effect !== undefined && effect * 2 === this.#cut) this.#end(onEnd);
          if (this.dead) return new Promise(() => {});
          const answer: unknown = await Reflect.apply(value as (...all: unknown[]) => unknown, target, given);
          if (effect !== undefined && effect * 2 + 1 === this.#cut) this.#end(onEnd);
          return this.dead ? new Promise(() => {}) : answer;
        };
      },
    });
  }

  #end(onEnd: () => void): void {
    if (this.dead) return;
    this.dead = true;
    onEnd();
  }
}

const writes = ['create', 'update', 'destroy'] as const satisfies readonly (keyof CoreState)[];

/** Starts a process, changes its command, takes it down; with an operator that ends at `cut`. Answers how many effects there were. */
async function runProcess(cut?: number): Promise<number> {
  const machine = new FakeMachine();
  const environment = manualEnvironment({ processes: machine.processes, files: machine.files, network: machine.network });
  const store = memoryState({ environment });
  const state = wrapCore(store, { environment });
  const first = new Life(cut);
  let life = first;
  let stop = new AbortController();
  let ended: Promise<void> = Promise.resolve();

  const start = (): void => {
    const own = life;
    const end = (): void => machine.orphanAll();
    const processes = own.mortal(machine.processes, ['spawnGated', 'signalGroup'], end);
    const gates: Environment['processes'] = new Proxy(processes, {
      get: (target, name) =>
        name === 'spawnGated'
          ? async (request: Parameters<Environment['processes']['spawnGated']>[0]) =>
              own.mortal(await target.spawnGated(request), ['release'], end)
          : Reflect.get(target, name),
    });
    const core = own.mortal<CoreState>(store, writes, end);
    const runtime = createRuntime({ state: core, environment });
    hostOperator({ environment: { ...environment, processes: gates } }).register({
      ...runtime,
      register: (controller) => void (controller.name === 'host-processes' && runtime.register(controller)),
    });
    stop = new AbortController();
    ended = runtime.run(stop.signal);
  };
  /** Lets everything happen; after the end of the first life the second begins. */
  const settle = async (): Promise<void> => {
    await environment.advance(1_000);
    if (!life.dead) return;
    life = new Life();
    start();
    await environment.advance(6_000);
  };
  const alive = (): readonly number[] => machine.pids;
  const declare = async (command: [string]): Promise<void> => {
    const spec = { command, directory: '/srv', environment: {}, outputFile: '/srv/a.log', ready: { delayMs: 0 } };
    await state.modify(processDefinition.create({ id: 'a', spec }), (draft) => {
      draft.spec = processDefinition.validate(spec);
    });
    await settle();
    const status = (await state.get(processStatusDefinition.pointer('a'))).spec;
    expect(status).toMatchObject({ state: 'Running', ready: true });
    expect(alive()).toEqual([status.pid]);
  };

  start();
  await declare(['one']);
  await declare(['two']);
  expect(machine.log.filter((line) => line.startsWith('spawn')).at(-1)).toMatch(/two$/);
  await state.teardown(processDefinition.pointer('a'));
  await settle();
  expect(alive()).toEqual([]);
  expect((await state.get(processDefinition.pointer('a'))).metadata.finalizers).toEqual([]);
  expect((await state.list(processStatusDefinition.kind())).items).toEqual([]);
  // What was let go ran once for each declaration, whatever happened.
  const released = machine.log.filter((line) => line.startsWith('release')).length;
  expect(released).toBeGreaterThanOrEqual(2);
  expect(released).toBeLessThanOrEqual(cut === undefined ? 2 : 3);
  stop.abort();
  await environment.advance(40_000);
  await ended;
  await store[Symbol.asyncDispose]();
  return first.effects;
}

test('a process: cut before and after every effect, the end is the same and nothing runs twice', async () => {
  const effects = await runProcess();
  expect(effects).toBeGreaterThan(10);
  for (let cut = 0; cut < effects * 2; cut++) {
    try {
      await runProcess(cut);
    } catch (error) {
      throw new Error(`cut ${cut % 2 === 0 ? 'before' : 'after'} effect ${Math.floor(cut / 2)} of ${effects}`, { cause: error });
    }
  }
});

/** Declares a file over one that a person wrote, changes it, takes it down; with an operator that ends at `cut`. */
async function runFile(cut?: number): Promise<number> {
  const environment = nodeEnvironment();
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'cut-')));
  const path = join(folder, 'a.txt');
  writeFileSync(path, 'written by a person');
  const store = memoryState({ environment });
  const state = wrapCore(store, { environment });
  const first = new Life(cut);
  const lives: { readonly life: Life; readonly stop: AbortController; readonly ended: Promise<void> }[] = [];

  const start = (life: Life): void => {
    const stop = new AbortController();
    const files = life.mortal(environment.files, ['writeTemporary', 'rename', 'remove', 'sync', 'changeMode'], () => {
      // The dead leave no timers and watches behind.
      stop.abort();
    });
    const runtime = createRuntime({ state: life.mortal<CoreState>(store, writes, () => stop.abort()), environment, graceMs: 1 });
    hostOperator({ environment: { ...environment, files }, pollMs: 20 }).register({
      ...runtime,
      register: (controller) => void (controller.name === 'host-files' && runtime.register(controller)),
    });
    lives.push({ life, stop, ended: runtime.run(stop.signal) });
  };
  /** Waits until `holds`; the second life begins as soon as the first one has ended. */
  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    for (let turn = 0; turn < 1_000; turn++) {
      if (lives.at(-1)?.life.dead) start(new Life());
      if (await holds()) return;
      await environment.sleep(2);
    }
    throw new Error(`gave up waiting for ${what}`);
  };
  const written = async (content: string): Promise<void> => {
    const spec = { path, within: folder, content };
    await state.modify(fileDefinition.create({ id: 'a', spec }), (draft) => {
      draft.spec = fileDefinition.validate(spec);
    });
    await until(content, async () => {
      const { items } = await state.list(fileStatusDefinition.kind());
      return items[0]?.spec.ready === true && readFileSync(path, 'utf8') === content;
    });
  };

  try {
    start(first);
    await written('one');
    await written('two');
    expect(readFileSync(`${path}.orig`, 'utf8')).toBe('written by a person');
    await state.teardown(fileDefinition.pointer('a'));
    await until('the end', async () => (await state.get(fileDefinition.pointer('a'))).metadata.finalizers.length === 0);
    expect(readdirSync(folder)).toEqual(['a.txt.orig']);
    expect((await state.list(fileStatusDefinition.kind())).items).toEqual([]);
    return first.effects;
  } finally {
    for (const { stop, ended } of lives) {
      stop.abort();
      await ended;
    }
    await store[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  }
}

test('a file: cut before and after every effect, what a person wrote is kept, once, and nothing is left', async () => {
  const effects = await runFile();
  expect(effects).toBeGreaterThan(10);
  for (let cut = 0; cut < effects * 2; cut++) {
    try {
      await runFile(cut);
    } catch (error) {
      throw new Error(`cut ${cut % 2 === 0 ? 'before' : 'after'} effect ${Math.floor(cut / 2)} of ${effects}`, { cause: error });
    }
  }
});
