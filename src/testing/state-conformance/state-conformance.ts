import { strict as assert } from 'node:assert';
import { bookmarkCases } from './bookmarks.ts';
import { claimCases } from './claims.ts';
import { finalizerNoteCases } from './finalizer-notes.ts';
import { editCases } from './helpers.ts';
import { lagCases } from './lag.ts';
import { namespaceCases } from './namespaces.ts';
import type { GeneratedCase } from './properties.ts';
import { generatedCases } from './properties.ts';
import { raceCases } from './races.ts';
import { readCases } from './reads.ts';
import { teardownCases } from './teardown.ts';
import type { ConformanceCase, MakeStore, StateConformanceOptions, StoreRequest } from './types.ts';
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
  ...namespaceCases,
  ...finalizerNoteCases,
  ...streamCases,
  ...bookmarkCases,
  ...claimCases,
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
  const fixed = allCases
    .filter((rule) => (rule.needs ?? []).every((flag) => options.capabilities[flag]))
    .map((rule) => ({ name: rule.name, run: () => inFreshWorld(makeStore, options, rule, (world) => rule.run(world)) }));
  const generated = generatedCases.map((rule) => ({ name: rule.name, run: () => runGenerated(rule, makeStore, options) }));
  return [...fixed, ...generated];
}

async function runGenerated(rule: GeneratedCase, makeStore: MakeStore, options: StateConformanceOptions): Promise<void> {
  const fc = await import('fast-check').catch((cause: unknown) => {
    throw new Error('the generated cases need the package fast-check beside this one: npm install --save-dev fast-check', { cause });
  });
  // Once something failed, making it smaller must not wait long for each event that does not come.
  let limits = options;
  const property = fc.asyncProperty(rule.plan(fc), async (plan) => {
    try {
      await inFreshWorld(makeStore, limits, rule, (world) => rule.run(world, plan));
    } catch (error) {
      limits = { ...options, limitMs: Math.min(options.limitMs ?? 5000, 200) };
      throw error;
    }
  });
  await fc.assert(property, { numRuns: options.runs ?? 25, ...(options.seed !== undefined && { seed: options.seed }) });
}

async function inFreshWorld(
  makeStore: MakeStore,
  options: StateConformanceOptions,
  { historySize, pendingLimit }: StoreRequest,
  use: (world: World) => Promise<void>,
): Promise<void> {
  const before = options.environment.open.counts();
  {
    await using store = await makeStore({
      ...(historySize !== undefined && { historySize }),
      ...(pendingLimit !== undefined && { pendingLimit }),
    });
    const world = new World(store, makeStore, options);
    try {
      await use(world);
    } finally {
      await world.close();
    }
  }
  assert.deepEqual(options.environment.open.counts(), before, 'nothing may stay open after a case');
}
