import { strict as assert } from 'node:assert';
import { nodeEnvironment } from '../../environment/index.ts';
import type { Capabilities } from '../../state/index.ts';
import { bookmarkCases } from './bookmarks.ts';
import { claimCases } from './claims.ts';
import { crashCases } from './crashes.ts';
import { finalizerNoteCases } from './finalizer-notes.ts';
import { editCases } from './helpers.ts';
import { lagCases } from './lag.ts';
import { namespaceCases } from './namespaces.ts';
import type { GeneratedCase } from './properties.ts';
import { generatedCases } from './properties.ts';
import { raceCases } from './races.ts';
import { readCases } from './reads.ts';
import { teardownCases } from './teardown.ts';
import type { ConformanceCase, MakeCore, MakeStore, StateConformanceOptions, StoreRequest, Suite } from './types.ts';
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
 * `for (const { name, run } of stateConformance(make, capabilities)) test(name, run)`. Each case makes its own store and leaves
 * nothing open. The generated cases need the package `fast-check` beside this one; a failure tells the seed and the smallest run.
 *
 * @param claims what the store claims, or more about it
 */
export function stateConformance(
  makeStore: MakeStore | MakeCore,
  claims: StateConformanceOptions | Capabilities,
): readonly ConformanceCase[] {
  const options = 'capabilities' in claims ? claims : { capabilities: claims };
  const { capabilities, crashes = false } = options;
  const suite: Suite = {
    options,
    environment: options.environment ?? nodeEnvironment(),
    async makeStore(request) {
      const made = await makeStore(request);
      return 'core' in made ? made : { core: made, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() };
    },
  };
  const fixed = [...allCases, ...(crashes ? crashCases : [])]
    .filter((rule) => (rule.needs ?? []).every((flag) => capabilities[flag]))
    .map((rule) => ({ name: rule.name, run: () => inFreshWorld(suite, rule, (world) => rule.run(world)) }));
  const generated = generatedCases
    .filter((rule) => crashes || rule.crashes !== true)
    .map((rule) => ({ name: rule.name, run: () => runGenerated(suite, rule) }));
  return [...fixed, ...generated];
}

async function runGenerated(suite: Suite, rule: GeneratedCase): Promise<void> {
  const fc = await import('fast-check').catch((cause: unknown) => {
    throw new Error('the generated cases need the package fast-check beside this one: npm install --save-dev fast-check', { cause });
  });
  const { runs = 25, crashRuns = 5, limitMs = 5000, seed } = suite.options;
  // Once something failed, making it smaller must not wait long for each event that does not come.
  let limits = suite;
  const property = fc.asyncProperty(rule.plan(fc), async (plan) => {
    try {
      await inFreshWorld(limits, rule, (world) => rule.run(world, plan));
    } catch (error) {
      // A store that crashes takes a while to come back, however small the run is.
      if (rule.crashes !== true) limits = { ...suite, options: { ...suite.options, limitMs: Math.min(limitMs, 200) } };
      throw error;
    }
  });
  const numRuns = rule.crashes === true ? crashRuns : runs;
  await fc.assert(property, { numRuns, includeErrorInReport: true, ...(seed !== undefined && { seed }) });
}

async function inFreshWorld(
  suite: Suite,
  { historySize, pendingLimit }: StoreRequest,
  use: (world: World) => Promise<void>,
): Promise<void> {
  const before = suite.environment.open.counts();
  {
    await using store = await suite.makeStore({
      ...(historySize !== undefined && { historySize }),
      ...(pendingLimit !== undefined && { pendingLimit }),
    });
    const world = new World(store, suite);
    try {
      await use(world);
    } finally {
      await world.close();
    }
  }
  assert.deepEqual(suite.environment.open.counts(), before, 'nothing may stay open after a case');
}
