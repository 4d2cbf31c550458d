import { strict as assert } from 'node:assert';
import { bookmarkCases } from './bookmarks.ts';
import { editCases } from './helpers.ts';
import { lagCases } from './lag.ts';
import { raceCases } from './races.ts';
import { readCases } from './reads.ts';
import { teardownCases } from './teardown.ts';
import type { ConformanceCase, MakeStore, StateConformanceOptions } from './types.ts';
import { valueCases } from './values.ts';
import { waitingCases } from './waiting.ts';
import { watchKindCases } from './watch-kind.ts';
import { streamCases, watchPointerCases } from './watch-pointer.ts';
import type { Case } from './world.ts';
import { World } from './world.ts';
import { writeCases } from './writes.ts';

const allCases: readonly Case[] = [
  ...valueCases,
  ...readCases,
  ...writeCases,
  ...watchPointerCases,
  ...watchKindCases,
  ...streamCases,
  ...bookmarkCases,
  ...raceCases,
  ...lagCases,
  ...editCases,
  ...teardownCases,
  ...waitingCases,
];

/**
 * Everything that a CoreState promises, as cases for any test runner:
 * `for (const { name, run } of stateConformance(make, options)) test(name, run)`. Each case makes its own store and leaves
 * nothing open.
 */
export function stateConformance(makeStore: MakeStore, options: StateConformanceOptions): readonly ConformanceCase[] {
  return allCases
    .filter((rule) => (rule.needs ?? []).every((flag) => options.capabilities[flag]))
    .map((rule) => ({ name: rule.name, run: () => runCase(rule, makeStore, options) }));
}

async function runCase(rule: Case, makeStore: MakeStore, options: StateConformanceOptions): Promise<void> {
  const before = options.environment.open.counts();
  {
    await using store = await makeStore({
      ...(rule.historySize !== undefined && { historySize: rule.historySize }),
      ...(rule.pendingLimit !== undefined && { pendingLimit: rule.pendingLimit }),
    });
    const world = new World(store, options);
    try {
      await rule.run(world);
    } finally {
      await world.close();
    }
  }
  assert.deepEqual(options.environment.open.counts(), before, 'nothing may stay open after a case');
}
