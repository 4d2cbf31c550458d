export { maximumSocketPath, parseListenAddress, socketPath } from './access.ts';
export type { ControlProvider } from './control-methods.ts';
export type { ServerLimits } from './grpc/limits.ts';
export type { Server, ServeStateOptions } from './serve-state.ts';
export { serveState } from './serve-state.ts';
