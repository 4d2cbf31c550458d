export { createQueue } from './create-queue.ts';
export type * from './queue.ts';
