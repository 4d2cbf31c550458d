import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as memory from '../../src/backends/memory/index.ts';
import * as remote from '../../src/backends/remote/index.ts';
import * as sqlite from '../../src/backends/sqlite/index.ts';
import * as core from '../../src/index.ts';
import * as server from '../../src/server/index.ts';
import * as testing from '../../src/testing/index.ts';
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

/** What the first of them has become: its packages of today, those names that users meet. */
const presentGoNames = [
  'WatchKindAggregated TeardownAndDestroy TeardownAndDestroyOption TeardownAndDestroyOptions WithTeardownAndDestroyOwner ContextWithTeardown',
  'Modify ModifyWithResult Teardowner TeardownAndDestroyer Filter FilteringRule Access Verb Readonly Old Bookmark Bootstrapped Errored Noop',
  'WithBootstrapBookmark WithTailEvents WithKindTailEvents WithStartFromBookmark WithKindStartFromBookmark WithLabelQuery',
  'WatchWithLabelQuery WithIDQuery WatchWithIDQuery WithExpectedPhase WithExpectedPhaseAny DefaultUpdateOptions WithUpdateOptions',
  'UnmarshalOption UnmarshalOptions WithSkipProtobufUnmarshal WithGetUnmarshalOptions WithListUnmarshalOptions WithWatchUnmarshalOptions',
  'WithWatchKindUnmarshalOptions ErrPhaseConflict IsPhaseConflictError ErrInvalidWatchBookmark IsInvalidWatchBookmarkError ErrUnsupported',
  'IsUnsupportedError ErrcheckOption ErrcheckOptions WithResourceType WithResourceNamespace GetResource',
  'NewState NewStateWithOptions Build DefaultStateOptions WithHistoryCapacity WithHistoryInitialCapacity WithHistoryMaxCapacity',
  'WithHistoryGap BackingStore WithBackingStore LoadHandler ErrAlreadyExists ErrVersionConflict ErrUpdateSameVersion ErrPendingFinalizers',
  'StateBuilder WithCreateNoOwner WithModifyNoOwner WithOwner NewNamespaceRegistry NewResourceRegistry RegisterDefault StateSuite NewAdapter',
  'AdapterOption WithDisableWatchRetry WithRetryLogger ConvertLabelQuery ConvertIDQuery',
  'StateGet StateGetByID StateGetResource ReaderGet ReaderGetByID StateList StateListAll ReaderList ReaderListAll StateModify',
  'StateModifyWithResult StateUpdateWithConflicts WriterModify WriterModifyWithResult StateWatch StateWatchKind StateWatchFor',
  'WrappedStateEvent ListIterator ToSlice Map NewList IteratorFromList CleanupOutputs NewMetadata DeepCopy Equal Finalizers Labels',
  'Annotations LabelQuery LabelTerm LabelExists LabelEqual LabelIn LabelLT LabelLTE LabelLTNumeric LabelLTENumeric RawLabelQuery IDQuery',
  'IDRegexpMatch Tombstone NewTombstone IsTombstone Any NewAnyFromProto ParsePhase ParseVersion NewResource Extension RegisterResource',
  'ResourceSpec Namespace NewNamespace ResourceDefinition NewResourceDefinition',
  'Controller QController QSettings Input InputKind Output Reader Writer ReaderWriter UncachedReader OutputTracker ReconcileEvent',
  'RequeueError NewRequeueError NewRequeueErrorf NewRequeueInterval ReducedResourceMetadata Engine DependencyGraph DependencyEdge NewRuntime',
  'RegisterController RegisterQController Run GetDependencyGraph CachedState WithCachedResource WithChangeRateLimit WithMetrics',
  'NewController SkipReconcileTag WithInputFinalizers WithIgnoreTearingDownInputs WithInputListOptions WithExtraInputs',
  'WithExtraEventChannel WithOnShutdownCallback NewQController DestroyOutputTag WithConcurrency WithExtraMappedInput',
  'WithExtraMappedInputKind WithExtraMappedDestroyReadyInput WithExtraOutputs WithOutputKind WithIgnoreTeardownUntil',
  'WithIgnoreTeardownWhile MapperSameID MapperNone MapExtractLabelValue MapperFuncFromTyped RemoveOutputs HasNoOutputs Combine',
  'WithExtraOwners NewControllerForResource NewRunner NewEqualRunner StartTask StopTask AssertResources AssertResource AssertNoResource',
  'AssertAll AssertLength ResourceIDs DestroyAll',
].flatMap((line) => line.split(' '));

/** The functions of this package that stand for a function of Go. */
const functions = [
  'isConflictError isNotFoundError isOwnerConflictError wrapCore matchesEvent',
  'checkReadyPhase completePhase createOrUpdate createResourcesPhase deletionCompletePhase dependencyPhase handleResourcePhaseExit',
  'isOptimisticLockError registerDeleteHooks updateResourceConditions withCustomRequeueResult',
  'withResourceOptions createRegistry',
  'filter owned namespaced registerDefinitions isPhaseConflictError isInvalidBookmarkError isUnsupportedError notFound alreadyExists',
  'versionConflict ownerConflict pendingFinalizers phaseConflict makeResource openDraft sameResource parseLabelQuery tombstone isTombstone',
  'defineResource describeDefinition requeueError skipError destroyOutputError createRuntime transform queueTransform mapSameId mapNone',
  'mapLabelValue mapTyped cleanup removeOutputs hasNoOutputs destroyController createTaskRunner',
  'memoryState openSqliteState openRemoteState serveState stateConformance assertResources assertResource assertNoResource assertAll',
  'assertLength resourceIds destroyAll teardownAll',
].flatMap((line) => line.split(' '));

const rows = page.split('\n').filter((line) => line.startsWith('| `'));
const left = rows.map((row) => row.split('|')[1] ?? '').join(' ');
const right = rows.map((row) => row.split('|').slice(2).join(' ')).join(' ');

test('every Go name stands in the map', () => {
  expect([...goNames, ...presentGoNames].filter((name) => !new RegExp(`\\b${name}\\b`).test(left))).toEqual([]);
});

test('what the map answers with exists', () => {
  const exported = { ...core, ...workload, ...memory, ...sqlite, ...remote, ...server, ...testing } as Readonly<Record<string, unknown>>;
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
