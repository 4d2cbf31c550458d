export type * from './core-state.ts';
export type * from './events.ts';
export type * from './options.ts';
export type * from './state.ts';
export type * from './watch.ts';
