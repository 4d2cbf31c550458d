export type { ManualEnvironment } from './manual-environment.ts';
export { manualEnvironment } from './manual-environment.ts';
export type { ConformanceCase, ConformanceStore } from './state-conformance.ts';
export { stateConformance } from './state-conformance.ts';
export * from './state-conformance/index.ts';
