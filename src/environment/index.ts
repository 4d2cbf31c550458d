export type * from './environment.ts';
export type * from './files.ts';
export type * from './logger.ts';
export type * from './metrics.ts';
export type * from './network.ts';
export type * from './open-counter.ts';
export type * from './processes.ts';
