/**
 * The core: what a resource is, the state that keeps it, and the controllers that keep the world as declared.
 * Backends, the server and the host operator have subpaths of their own.
 */
export * from './environment/index.ts';
export * from './queue/index.ts';
export * from './resource/index.ts';
export * from './runtime/index.ts';
export * from './state/index.ts';
