export { stateConformance } from './state-conformance.ts';
export type { ConformanceCase, MakeCore, MakeStore, StateConformanceOptions, StoreRequest, StoreUnderTest } from './types.ts';
