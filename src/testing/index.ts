export type { RecordedCall, SequentialModel } from './linearizability.ts';
export { findNonLinearizableKey } from './linearizability.ts';
export type { ManualEnvironment } from './manual-environment.ts';
export { manualEnvironment } from './manual-environment.ts';
export type {
  ConformanceCase,
  MakeCore,
  MakeStore,
  StateConformanceOptions,
  StoreRequest,
  StoreUnderTest,
} from './state-conformance/index.ts';
export { stateConformance } from './state-conformance/index.ts';
export type { AssertionWorld, ResourceCheck } from './waiting-assertions.ts';
export {
  assertAll,
  assertLength,
  assertNoResource,
  assertResource,
  assertResources,
  destroyAll,
  resourceIds,
  teardownAll,
} from './waiting-assertions.ts';
