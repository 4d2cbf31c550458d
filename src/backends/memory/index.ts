export type { MemoryState, MemoryStateOptions } from './memory-state.ts';
export { memoryState } from './memory-state.ts';
