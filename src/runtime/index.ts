export type * from './controller.ts';
export { isQueueController } from './controller.ts';
export { destroyController } from './destroy-controller.ts';
export type { ControllerGraph } from './graph.ts';
export { graphToDot, graphToMermaid } from './graph.ts';
export { RequeueError, requeueError, SkipError, skipError } from './run-errors.ts';
export type { ControllerStatus, KeyStatus, Runtime, RuntimeOptions } from './runtime.ts';
export { createRuntime } from './runtime.ts';
export type { WriteLimit } from './write-limiter.ts';
