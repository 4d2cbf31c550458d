export { stateConformance } from './state-conformance.ts';
export type { ConformanceCase, MakeStore, StateConformanceOptions, StoreRequest, StoreUnderTest } from './types.ts';
