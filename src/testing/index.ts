export type { ManualEnvironment } from './manual-environment.ts';
export { manualEnvironment } from './manual-environment.ts';
