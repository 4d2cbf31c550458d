import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as core from '../../src/index.ts';
import * as workload from '../../src/workload/index.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/go-map.md', import.meta.url)), 'utf8');

/** Every name of the index of the two Go packages, methods and constants too. */
const goNames = [
  'IsConflictError IsNotFoundError IsOwnerConflictError CoreState Get List Create Update Destroy Watch WatchKind',
  'CreateOption WithCreateOwner CreateOptions DestroyOption WithDestroyOwner DestroyOptions ErrConflict ErrNotFound ErrOwnerConflict',
  'Event EventType String Created Updated Destroyed GetOption GetOptions ListOption ListOptions ResourceConditionFunc State WrapCore',
  'UpdateWithConflicts WatchFor Teardown AddFinalizer RemoveFinalizer TeardownOption WithTeardownOwner TeardownOptions',
  'UpdateOption WithUpdateOwner UpdateOptions UpdaterFunc WatchForCondition Matches WatchForConditionFunc WithCondition WithEventTypes',
  'WithFinalizerEmpty WithPhases WatchKindOption WithBootstrapContents WatchKindOptions WatchOption WatchOptions',
  'CheckReadyPhase CompletePhase CreateOrUpdate CreateResourcesPhase DeletionCompletePhase DependencyPhase HandleResourcePhaseExit',
  'IsOptimisticLockError RegisterDeleteHooks UpdateResourceConditions HandlerFunc LifecycleEvent CreateEvent UpdateEvent DeleteEvent',
  'Phase DefaultReconcileResult Requeue PhaseOption WithCustomRequeueResult WithResourceOptions Registry Execute HandleExecution',
  'Register ResourceOption ResourceOptionWithWait',
].flatMap((line) => line.split(' '));

/** The functions of this package that stand for a function of Go. */
const functions = [
  'isConflictError isNotFoundError isOwnerConflictError wrapCore matchesEvent',
  'checkReadyPhase completePhase createOrUpdate createResourcesPhase deletionCompletePhase dependencyPhase handleResourcePhaseExit',
  'isOptimisticLockError registerDeleteHooks updateResourceConditions withCustomRequeueResult',
  'withResourceOptions createRegistry',
].flatMap((line) => line.split(' '));

const rows = page.split('\n').filter((line) => line.startsWith('| `'));
const left = rows.map((row) => row.split('|')[1] ?? '').join(' ');
const right = rows.map((row) => row.split('|').slice(2).join(' ')).join(' ');

test('every Go name stands in the map', () => {
  expect(goNames.filter((name) => !new RegExp(`\\b${name}\\b`).test(left))).toEqual([]);
});

test('what the map answers with exists', () => {
  const exported = { ...core, ...workload } as Readonly<Record<string, unknown>>;
  for (const name of functions) {
    expect(right, name).toMatch(new RegExp(`\\b${name}\\b`));
    expect(exported[name], name).toBeTypeOf('function');
  }
});

test('the helpers of the map are methods of a state', async () => {
  const { memoryState } = await import('../../src/backends/memory/index.ts');
  const environment = core.nodeEnvironment();
  await using store = memoryState({ environment });
  const state = core.wrapCore(store, { environment }) as unknown as Readonly<Record<string, unknown>>;
  for (const row of rows) {
    const [, go = '', here = ''] = row.split('|');
    if (!/`(CoreState|State)\./.test(go)) continue;
    for (const [, name = ''] of here.matchAll(/`([a-z][A-Za-z]+)[`(]/g)) expect(state[name], name).toBeTypeOf('function');
  }
});
