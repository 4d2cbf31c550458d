import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/**
 * In each round one stack is created, updated, pruned and deleted, and the operator is killed once in each of the four. The
 * moments are steps of the work, counted in a round without a kill: the first step to the last is cut into as many parts as there
 * are rounds, and each round draws one step of its own part, and whether to die before the step, while it is on its way, or after it.
 */
const rounds = Number(process.env.STEADYSTATE_ROUNDS ?? 100);
const seed = Number(process.env.STEADYSTATE_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** So many rounds at once; they share nothing. */
const lanes = 2;
const program = fileURLToPath(new URL('./crash-program.mjs', import.meta.url));
const patienceMs = 120_000;

const phases = ['create', 'update', 'prune', 'delete'] as const;
type Phase = (typeof phases)[number];

interface Kill {
  readonly step: number;
  readonly when: 'before' | 'during' | 'after';
  readonly delayMs: number;
}

interface Message {
  readonly opened?: { readonly revision: number; readonly stack?: { readonly mark: string; readonly phase: string } };
  readonly revision?: number;
  readonly acknowledged?: string;
  readonly killed?: { readonly what: string; readonly step: number; readonly when: string };
  readonly done?: number;
  readonly look?: unknown;
}

/** One phase of a round: what there is at its end, and what it took. */
interface Outcome {
  readonly kill: string;
  readonly hit: boolean;
  readonly steps: number;
  readonly things: unknown;
  readonly files: Readonly<Record<string, string>>;
  /** Pids of starts in this phase, by service. */
  readonly starts: Readonly<Record<string, readonly number[]>>;
  /** Pids of what lives. */
  readonly living: readonly number[];
  /** Those that should: the newest start of each service that is declared. */
  readonly expected: readonly number[];
}

const names = ['a', 'b', 'c'];

/** Each start of a service appends its pid to a file of its own. */
function service(folder: string, name: string, more: object = {}, change = ''): object {
  return {
    command: ['sh', '-c', `echo $$ >> starts-${name}; echo up ${change}; exec sleep 1000`],
    environment: { ROUND: folder },
    files: { [`${name}.txt`]: `declared by ${name}${change}` },
    ready: { log: 'up', intervalMs: 20 },
    ...more,
  };
}

function specOf(folder: string, phase: Phase): object {
  const a = service(folder, 'a');
  if (phase === 'prune') return { directory: 'data', services: { a } };
  const change = phase === 'update' ? 'changed' : '';
  return { directory: 'data', services: { a, b: service(folder, 'b', { dependsOn: ['a'] }, change), c: service(folder, 'c') } };
}

/** Services that run at the end of a phase. */
const runningAfter: Readonly<Record<Phase, readonly string[]>> = { create: names, update: names, prune: ['a'], delete: [] };

/** The program that is killed. */
class Operator {
  readonly #child: ChildProcess;
  readonly #messages: Message[] = [];
  readonly #ended: Promise<void>;
  #wake: () => void = () => {};
  #errors = '';
  #over = false;
  /** The newest revision that was acknowledged, and the word of the user that was. */
  revision = 0;
  acknowledged: string | undefined;
  killed: Message['killed'];

  constructor(folder: string) {
    this.#child = spawn(process.execPath, [program, join(folder, 'state.db'), folder], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors += String(chunk);
    });
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    lines.on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if (message.revision !== undefined) this.revision = Math.max(this.revision, message.revision);
      else if (message.acknowledged !== undefined) this.acknowledged = message.acknowledged;
      else if (message.killed !== undefined) this.killed = message.killed;
      else this.#messages.push(message);
      this.#wake();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', () => {
        this.#over = true;
        this.#wake();
        resolve();
      });
    });
  }

  /** The next answer; `undefined`: the program was killed before. */
  async next(): Promise<Message | undefined> {
    const limit = setTimeout(() => this.kill(), patienceMs);
    while (this.#messages.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    clearTimeout(limit);
    const message = this.#messages.shift();
    if (message === undefined && this.killed === undefined) throw new Error(`the operator ended by itself, or hung: ${this.#errors}`);
    return message;
  }

  async ask(command: object): Promise<Message | undefined> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    return this.next();
  }

  async end(): Promise<void> {
    this.#child.stdin?.end('{"verb":"end"}\n');
    await this.#ended;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async killNow(): Promise<void> {
    this.kill();
    await this.#ended;
  }
}

/** Living processes of a round's services, and of their gates. */
function livingOf(folder: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`ROUND=${folder}`) &&
          !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

function startsOf(folder: string, name: string): readonly number[] {
  const path = join(folder, 'data', `starts-${name}`);
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : [];
}

/** Every file below the directory of the stack, but those that the services write. */
function filesOf(folder: string): Readonly<Record<string, string>> {
  const data = join(folder, 'data');
  if (!existsSync(data)) return {};
  const found = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => !entry.name.startsWith('starts-'));
  return Object.fromEntries(
    found.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(data.length + 1), entry.isFile() ? readFileSync(path, 'utf8') : ''];
    }),
  );
}

const sorted = (pids: readonly (number | undefined)[]): readonly number[] => pids.map(Number).sort((left, right) => left - right);

/** A whole round; `kills` says when the operator dies in each phase, if it does. */
async function round(kills: Partial<Record<Phase, Kill>>, expected: Partial<Record<Phase, Outcome>> = {}): Promise<Record<Phase, Outcome>> {
  const folder = mkdtempSync(join(tmpdir(), 'ss-crash-'));
  const outcomes: Partial<Record<Phase, Outcome>> = {};
  let operator = new Operator(folder);
  try {
    await operator.next();
    for (const phase of phases) {
      const kill = kills[phase];
      const before = Object.fromEntries(names.map((name) => [name, startsOf(folder, name).length]));
      const command = phase === 'delete' ? { verb: 'delete', mark: phase } : { verb: 'apply', mark: phase, spec: specOf(folder, phase) };
      let answer = await operator.ask({ ...command, kill });
      const { killed } = operator;
      if (kill !== undefined) {
        // What was over before its moment is killed all the same.
        if (answer !== undefined) await operator.killNow();
        const { revision, acknowledged } = operator;
        operator = new Operator(folder);
        const found = (await operator.next())?.opened;
        if (found === undefined || found.revision < revision)
          throw new Error(`revision ${revision} was acknowledged, and after the kill the store is at ${found?.revision}`);
        if (acknowledged === phase) {
          const kept = phase === 'delete' ? found.stack?.phase !== 'running' : found.stack?.mark === phase;
          if (!kept) throw new Error(`${phase} was acknowledged, and after the kill there is ${JSON.stringify(found.stack)}`);
        }
        // What was acknowledged is not asked for again: the operator gets there by itself.
        answer = await operator.ask(acknowledged === phase ? { verb: 'wait' } : command);
      }
      const look = async (): Promise<unknown> =>
        JSON.parse(JSON.stringify((await operator.ask({ verb: 'look' }))?.look).replaceAll(folder, '<folder>'));
      let things = await look();
      // The last word of a controller may come after that of the stack.
      for (
        const end = Date.now() + 10_000;
        phase in expected && !isDeepStrictEqual(things, expected[phase]?.things) && Date.now() < end;
      ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        things = await look();
      }
      outcomes[phase] = {
        kill: killed === undefined ? 'not reached' : `${killed.when} ${killed.what}`,
        hit: killed !== undefined,
        steps: answer?.done ?? 0,
        things,
        files: filesOf(folder),
        starts: Object.fromEntries(names.map((name) => [name, startsOf(folder, name).slice(before[name])])),
        living: sorted(livingOf(folder)),
        expected: sorted(runningAfter[phase].map((name) => startsOf(folder, name).at(-1))),
      };
    }
    await operator.end();
    return outcomes as Record<Phase, Outcome>;
  } finally {
    await operator.killNow();
    for (const pid of livingOf(folder)) process.kill(pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Numbers in [0, 1), the same for the same seed. */
function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe.runIf(process.platform === 'linux')(`${rounds} kills of the operator in each (seed ${seed})`, () => {
  let calm: Record<Phase, Outcome>;
  const results = Array.from({ length: rounds }, () => {
    let resolve: (outcome: Promise<Record<Phase, Outcome>>) => void = () => {};
    const promise = new Promise<Record<Phase, Outcome>>((settle) => {
      resolve = settle;
    });
    promise.catch(() => {});
    return { promise, resolve };
  });

  beforeAll(async () => {
    calm = await round({});
    const random = randomOf(seed);
    const kills = results.map((_, index) =>
      Object.fromEntries(
        phases.map((phase): [Phase, Kill] => [
          phase,
          {
            step: 1 + Math.floor(((index + random()) / rounds) * calm[phase].steps),
            when: (['before', 'during', 'after'] as const)[Math.floor(random() * 3)] as Kill['when'],
            delayMs: random() * 2,
          },
        ]),
      ),
    );
    let next = 0;
    for (let lane = 0; lane < lanes; lane++) {
      void (async () => {
        for (let index = next++; index < rounds; index = next++) {
          const done = round(kills[index] as Record<Phase, Kill>, calm);
          results[index]?.resolve(done);
          await done.catch(() => {});
        }
      })();
    }
  });

  test('without a kill each service starts once, the changed one once more, and nothing else', () => {
    const counts = phases.map((phase) => names.map((name) => calm[phase].starts[name]?.length));
    expect(counts).toEqual([
      [1, 1, 1],
      [0, 1, 0],
      [0, 0, 0],
      [0, 0, 0],
    ]);
    for (const phase of phases) expect(calm[phase].living).toEqual(calm[phase].expected);
    expect(calm.delete.files).toEqual({});
    expect(calm.delete.things).toEqual({});
  });

  const each = phases.flatMap((phase) => results.map((_, index) => [phase, index + 1] as const));
  test.each(each)('%s, kill %i', async (phase, number) => {
    const outcomes = await (results[number - 1] as (typeof results)[number]).promise;
    const outcome = outcomes[phase];
    const about = `killed ${outcome.kill}`;
    expect(outcome.things, about).toEqual(calm[phase].things);
    expect(outcome.files, about).toEqual(calm[phase].files);
    expect(outcome.living, about).toEqual(outcome.expected);
    for (const name of names) {
      const without = calm[phase].starts[name]?.length ?? 0;
      const started = outcome.starts[name]?.length ?? 0;
      expect(started, `starts of ${name}, ${about}`).toBeGreaterThanOrEqual(without);
      expect(started, `starts of ${name}, ${about}`).toBeLessThanOrEqual(without + 1);
    }
    const more = names.filter((name) => (outcome.starts[name]?.length ?? 0) > (calm[phase].starts[name]?.length ?? 0));
    expect(more.length, `started once more: ${more.join()}, ${about}`).toBeLessThanOrEqual(1);
  });

  test('the kills hit the work, from its beginning to its end, before, during and after its steps', async () => {
    const all = await Promise.all(results.map(({ promise }) => promise));
    for (const phase of phases) {
      const kills = all.map((outcomes) => outcomes[phase]);
      const hits = kills.filter(({ hit }) => hit);
      expect(hits.length, `${phase}: ${kills.map(({ kill }) => kill).join(', ')}`).toBeGreaterThanOrEqual(
        Math.max(1, Math.floor(rounds * 0.8)),
      );
    }
    const text = all.flatMap((outcomes) => phases.map((phase) => outcomes[phase].kill));
    if (rounds >= 20)
      for (const when of ['before', 'during', 'after'])
        expect(
          text.some((kill) => kill.startsWith(when)),
          when,
        ).toBe(true);
    if (rounds >= 50)
      for (const what of ['store.create', 'store.update', 'store.destroy', 'processes.spawnGated', 'processes.signalGroup', 'files.'])
        expect(
          text.some((kill) => kill.includes(what)),
          what,
        ).toBe(true);
  });

  afterAll(async () => {
    await Promise.allSettled(results.map(({ promise }) => promise));
  });
});
