import { strict as assert } from 'node:assert';
import { errorCode, findError } from '../../resource/index.ts';
import type { RecordedCall, SequentialModel } from '../linearizability.ts';
import { findNonLinearizableKey } from '../linearizability.ts';
import type { Command, QueryName } from './generated.ts';
import { queries, runCommands } from './generated.ts';
import type { SlowStep } from './slow-readers.ts';
import { runSlowReaders } from './slow-readers.ts';
import type { World } from './world.ts';

type FastCheck = typeof import('fast-check');
type Arbitrary<Value> = import('fast-check').Arbitrary<Value>;

/** A rule that is checked on many random runs, each on a fresh store. */
export interface GeneratedCase {
  readonly name: string;
  readonly historySize?: number;
  readonly pendingLimit?: number;
  /** One random run; `plan` holds the choices. */
  plan(fc: FastCheck): Arbitrary<readonly unknown[]>;
  run(world: World, plan: readonly unknown[]): Promise<void>;
}

export const generatedCases: readonly GeneratedCase[] = [
  {
    name: 'generated: readers that fall behind are told what fits what they know, and end up with the state (W6, W7, W12)',
    historySize: 8,
    plan: slowStepsOf,
    run: (world, plan) => runSlowReaders(world, plan as readonly SlowStep[], false),
  },
  {
    name: 'generated: readers that fall behind together, above their common cap, end up with the state too',
    historySize: 8,
    pendingLimit: 3,
    plan: slowStepsOf,
    run: (world, plan) => runSlowReaders(world, plan as readonly SlowStep[], true),
  },
  {
    name: 'generated: any order of calls ends as a model says, and every watch gives exactly the events that follow (W1–W7, W10, W11)',
    plan: commandsOf,
    run: (world, plan) => runCommands(world, plan as readonly Command[]),
  },
  {
    name: 'generated: K1, what concurrent clients see could have happened one after another',
    plan: (fc) => {
      const call = fc.constantFrom<ClientCall>('create', 'get', 'update', 'increment', 'increment', 'increment', 'destroy');
      const step = fc.record({ key: fc.constantFrom('a', 'b'), call, pause: fc.nat(1) });
      return fc.array(fc.array(step, { maxLength: 8, size: 'max' }), { minLength: 2, maxLength: 4, size: 'max' });
    },
    run: (world, plan) => runClients(world, plan as readonly (readonly ClientStep[])[]),
  },
];

function commandsOf(fc: FastCheck): Arbitrary<Command[]> {
  const id = fc.constantFrom('a', 'b', 'c');
  // Mostly the same actor, so that most calls get past the first checks.
  const owner = fc.constantFrom('', '', '', '', 'A');
  const app = fc.constantFrom('', 'web', 'web', 'db');
  const query = fc.constantFrom(...(Object.keys(queries) as QueryName[]));
  const phases = fc.constantFrom<'running' | 'tearingDown' | 'any'>('running', 'tearingDown', 'any');
  const weighted: { readonly weight: number; readonly arbitrary: Arbitrary<Command> }[] = [
    { weight: 5, arbitrary: fc.record({ do: fc.constant('create' as const), id, owner, app, finalizer: fc.boolean() }) },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('update' as const),
        id,
        owner,
        app,
        size: fc.nat(3),
        stale: fc.nat(4).map((chance) => chance === 0),
        phase: fc.constantFrom<'running' | 'tearingDown' | 'same'>('same', 'running', 'tearingDown'),
        expectedPhase: phases,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('destroy' as const),
        id,
        owner,
        uid: fc.constantFrom<'none' | 'right' | 'stale'>('none', 'right', 'stale'),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('finalizer' as const), id, add: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('teardown' as const), id, owner }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('list' as const), query }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('mark' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('watch' as const),
        query,
        start: fc.constantFrom<'now' | 'contents' | 'mark' | 'tail'>('now', 'contents', 'mark', 'tail'),
        place: fc.nat(6),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('watchOne' as const), id }) },
  ];
  return fc.array(fc.oneof(...weighted), { maxLength: 50, size: 'max' });
}

/** `increment` is a get, and an update of what it answered. */
function slowStepsOf(fc: FastCheck): Arbitrary<SlowStep[]> {
  const mode = fc.constantFrom<'update' | 'toggle' | 'remake' | 'relabel'>('update', 'toggle', 'remake', 'relabel');
  const query = fc.constantFrom(...(Object.keys(queries) as QueryName[]));
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), id: fc.nat(5), times: fc.integer({ min: 1, max: 12 }), mode }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('open' as const), query, contents: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('read' as const), reader: fc.nat(3), count: fc.integer({ min: 1, max: 6 }) }) },
  );
  return fc.array(step, { maxLength: 40, size: 'max' });
}

type ClientCall = 'create' | 'get' | 'update' | 'increment' | 'destroy';
type SingleCall = Exclude<ClientCall, 'increment'>;
interface ClientStep {
  readonly key: string;
  readonly call: ClientCall;
  /** Macrotasks to wait before it. */
  readonly pause: number;
}

interface ClientInput {
  readonly call: SingleCall;
  /** The version that an update stands on. */
  readonly version?: string;
}

/** The version that is stored after a success (of a get: that was read), or how the call failed. */
type ClientOutput = { readonly version: string } | { readonly failed: string };

/** One resource as the sequence of its versions; `''`: it is not there. */
const versionedRegister: SequentialModel<string, ClientInput, ClientOutput> = {
  initial: '',
  step(state, { call, version }, output) {
    if ('failed' in output) {
      const expected =
        call === 'create'
          ? state !== '' && 'alreadyExists'
          : state === ''
            ? 'NotFound'
            : call === 'update' && version !== state && 'version';
      return output.failed === expected ? state : undefined;
    }
    if (call === 'get') return state !== '' && output.version === state ? state : undefined;
    if (call === 'create') return state === '' ? output.version : undefined;
    if (call === 'destroy') return state === '' ? undefined : '';
    return state !== '' && version === state ? output.version : undefined;
  },
};

/** Several clients at once; an update stands on the newest version that its client has seen. */
async function runClients(world: World, clients: readonly (readonly ClientStep[])[]): Promise<void> {
  const history: RecordedCall<ClientInput, ClientOutput>[] = [];
  let clock = 0;
  const client = async (steps: readonly ClientStep[]): Promise<void> => {
    const seen = new Map<string, string>();
    for (const { key, call, pause } of steps) {
      for (let turn = 0; turn < pause; turn++) await world.environment.breathe();
      for (const each of call === 'increment' ? (['get', 'update'] as const) : [call]) {
        const version = seen.get(key) ?? '0';
        const began = clock++;
        const output = await perform(world, key, each, version);
        history.push({ key, input: each === 'update' ? { call: each, version } : { call: each }, output, began, ended: clock++ });
        if ('version' in output && output.version !== '') seen.set(key, output.version);
      }
    }
  };
  await Promise.all(clients.map(client));
  const key = findNonLinearizableKey(history, versionedRegister);
  const calls = history.filter((call) => call.key === key).map((call) => JSON.stringify(call));
  assert.equal(key, undefined, `no order explains what was seen of ${key}:\n${calls.join('\n')}`);
}

async function perform(world: World, id: string, call: SingleCall, version: string): Promise<ClientOutput> {
  const { core } = world;
  try {
    if (call === 'create') return { version: (await core.create(world.thing(id))).metadata.version };
    if (call === 'get') return { version: (await core.get(world.pointer(id))).metadata.version };
    if (call === 'update') return { version: (await core.update(world.thing(id), { currentVersion: version })).metadata.version };
    await core.destroy(world.pointer(id));
    return { version: '' };
  } catch (error) {
    return { failed: findError(error)?.reason ?? errorCode(error) ?? String(error) };
  }
}
