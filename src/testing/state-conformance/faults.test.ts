import { describe, expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import type { Fault } from './faulty-stores.ts';
import { callFaults, eachEvent, over, withEvents } from './faulty-stores.ts';
import { watchFaults } from './faulty-watches.ts';
import { stateConformance } from './index.ts';

const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };
const faults: Readonly<Record<string, Fault>> = { ...callFaults, ...watchFaults };

/** Each fault, and the beginning of the name of the case that is there to see it. */
const seenBy: Readonly<Record<string, string>> = {
  'a get answers the value before': 'get: sees what was acknowledged',
  'an update does not check the owner': 'update: the owner must match',
  'a destroy does not check the owner': 'destroy: owner and finalizers',
  'a create takes the owner from the metadata': 'create: the owner comes from the options',
  'a create overwrites what is there': 'create: what exists is a conflict',
  'an update does not check the version': 'update: currentVersion counts',
  'a second racing update wins too': 'races: K2',
  'an update does not check the phase': 'update: checks NotFound',
  'a phase goes back': 'update: from running to tearingDown',
  'an update keeps the finalizers of before': 'update: replaces',
  'an update without a change writes nothing': 'update: without a change',
  'created does not survive an update': 'update: replaces',
  'a destroy goes on despite finalizers': 'destroy: owner and finalizers',
  'a destroy does not look at the incarnation': 'destroy: checks NotFound',
  'a destroy of nothing succeeds': 'destroy: checks NotFound',
  'a version is used again': 'versions: none is ever used twice',
  'a list is no snapshot': 'races: K3',
  'a list is ordered by UTF-16 units': 'list: one kind only',
  'a list is not filtered': 'queries: every term',
  'an error has no pointer': 'get: what is not there',
  'a finalizer is as old as the last write': 'finalizerNotes: since when',
  'what is answered can be changed': 'values: what a call answers is deeply frozen',
  'an event is lost now and then': 'watchKindAggregated',
  'an event comes twice': 'bookmarks: W8',
  'two events come in the wrong order': 'watch: first the present value',
  'the old value is the new one': 'watchKind: no initial events',
  'a destroyed event carries a tombstone': 'watchKind: no initial events',
  'a bookmark comes before bootstrapped': 'watchKind: bootstrapContents gives all',
  'the contents come in the order of their creation': 'watchKind: bootstrapContents gives all',
  'bootstrapped never comes': 'watchKind: bootstrapContents gives all',
  'what stops to match a query is not told': 'watchKind: W11',
  'what starts to match a query comes as updated': 'watchKind: W11',
  'a query is not looked at': 'watchKind: id queries, label queries',
  'a watch begins with the value before the last write': 'watchKind: contents are as new',
  'the contents of a watch hold what was destroyed last': 'watchKind: contents are as new',
  'a watch of one resource has no first event': 'watch: of what is not there',
  'a handler is not waited for':
    'streams: forEach hands over one event after another, waits for what its handler promises, and rejects with what it throws',
  'a watch is established late': 'watch: a change after its promise resolved',
  'a bookmark that is no good starts from now': 'bookmarks: W9',
  'a resumed watch repeats the first event': 'bookmarks: W5',
  'a resumed watch leaves out the first event': 'bookmarks: W5',
  'a tail begins with the newest': 'watch: tailEvents',
  'a bookmark stands one event too far': 'bookmarks: W5',
  'a slow watcher is not told what it missed': 'lag: W12',
  'a slow watcher is told of the end of what it never saw': 'generated: readers that fall behind are',
  'a slow watcher is not told what went': 'generated: readers that fall behind are',
  'a slow watcher is told an old value that it never saw': 'generated: readers that fall behind are',
  'a slow watcher fails': 'lag: W12',
  'a strict watch is coalesced': 'lag: a strict watch',
  'a bookmark inside a coalesced stretch is new': 'lag: in a coalesced stretch',
  'another incarnation comes as an update': 'lag: another incarnation',
};

/** The names of the cases, among those that begin so, that a store with this fault fails. */
async function failuresOf(fault: Fault, begin = '', runs = 30): Promise<string[]> {
  const environment = nodeEnvironment();
  const cases = stateConformance(
    (request) => {
      const core = memoryState({ environment, ...request });
      return { core: fault(core, environment), [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
    },
    // An event in the same process is there at once, so a lost one need not be awaited long.
    { environment, capabilities, shortHistory: true, limitMs: begin === '' ? 5000 : 100, runs, seed: 1 },
  );
  const failures: string[] = [];
  for (const { name, run } of cases) {
    if (name.startsWith(begin)) await run().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  }
  return failures;
}

describe('a correct store passes', () => {
  test('through a wrapper that changes nothing', async () => {
    expect(await failuresOf((core) => over(core, {}))).toEqual([]);
  });

  test('through watches that are made anew', async () => {
    expect(
      await failuresOf((core, environment) =>
        withEvents(
          core,
          environment,
          eachEvent((event) => event),
        ),
      ),
    ).toEqual([]);
  });
});

describe('the suite sees that', () => {
  test('every fault has a case that is there for it', () => {
    expect(Object.keys(seenBy).sort()).toEqual(Object.keys(faults).sort());
  });

  test.each(Object.keys(faults))('%s', async (name) => {
    expect(await failuresOf(faults[name] as Fault, seenBy[name])).not.toEqual([]);
  });
});

describe('the generated runs alone see that', () => {
  test.each([
    'an update does not check the owner',
    'an update does not check the version',
    'an update does not check the phase',
    'a phase goes back',
    'a create overwrites what is there',
    'a destroy goes on despite finalizers',
    'a destroy does not look at the incarnation',
    'an event is lost now and then',
    'an event comes twice',
    'two events come in the wrong order',
    'the old value is the new one',
    'what stops to match a query is not told',
    'a resumed watch repeats the first event',
    'a bookmark stands one event too far',
  ])('%s', async (name) => {
    expect(await failuresOf(faults[name] as Fault, 'generated: any order', 150)).not.toEqual([]);
  });

  test.each(['a get answers the value before', 'a second racing update wins too', 'an update does not check the version'])(
    'what clients see has no order when %s',
    async (name) => {
      expect(await failuresOf(faults[name] as Fault, 'generated: K1', 150)).not.toEqual([]);
    },
  );
});
