export type * from './queue.ts';
