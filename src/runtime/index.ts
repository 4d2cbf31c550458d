export type * from './controller.ts';
