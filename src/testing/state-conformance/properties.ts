import type { ClientStep } from './clients.ts';
import { ClientHistory, clientsOf } from './clients.ts';
import type { CrashRound } from './crashes.ts';
import { runCrashes } from './crashes.ts';
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
  /** It crashes its store. */
  readonly crashes?: boolean;
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
    plan: (fc) => clientsOf(fc, 8),
    async run(world, plan) {
      const history = new ClientHistory();
      await Promise.all((plan as readonly (readonly ClientStep[])[]).map((steps) => history.run(world, steps)));
      history.expectLinearizable();
    },
  },
  {
    name: 'generated: K4, what anybody has seen stays over crashes at any moment, and watches go on (K1, W5, W7)',
    crashes: true,
    plan: (fc) =>
      fc.array(fc.record({ clients: clientsOf(fc, 6), after: fc.integer({ min: 1, max: 20 }) }), { minLength: 1, maxLength: 3 }),
    run: (world, plan) => runCrashes(world, plan as readonly CrashRound[]),
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
