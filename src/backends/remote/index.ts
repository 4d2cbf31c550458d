export type { BundleProblem, ControlClient } from './control-client.ts';
export type { RemoteState, RemoteStateOptions } from './remote-state.ts';
export { openRemoteState } from './remote-state.ts';
