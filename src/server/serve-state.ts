import { dirname } from 'node:path';
import { Client, connectivityState, credentials, Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import type { Environment } from '../environment/index.ts';
import type { DefinitionRegistry } from '../resource/index.ts';
import { SteadystateError } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { wrapCore } from '../state/index.ts';
import { controlService, ResourceCodec, stateService } from '../wire/index.ts';
import type { ListenAddress } from './access.ts';
import { parseListenAddress } from './access.ts';
import type { ControlProvider } from './control-handlers.ts';
import { controlHandlers } from './control-handlers.ts';
import type { HandlerContext } from './handlers.ts';
import { stateHandlers } from './handlers.ts';
import { RunningCalls } from './running-calls.ts';

export interface ServeStateOptions {
  readonly state: CoreState;
  readonly environment: Environment;
  /** `unix:PATH` or `grpc://127.0.0.1:PORT` (0: a free one). */
  readonly listen: readonly string[];
  /** What relative socket paths start from. */
  readonly directory: string;
  /** Definitions whose specs are decoded; specs of other types pass through untouched. */
  readonly registry?: DefinitionRegistry;
  readonly control: ControlProvider;
  /** Largest request, bytes. @default 4 MiB */
  readonly maximumRequestBytes?: number;
}

export interface Server extends AsyncDisposable {
  /** Where it listens, in the same order: `unix:/abs` or `grpc://127.0.0.1:PORT`. */
  readonly addresses: readonly string[];
  /** Ends watches cleanly, lets calls end for `graceMs`, then cuts. @default 2_000 */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Serves a state over gRPC. The caller holds the store's lock: a socket that an earlier process left over is removed.
 * Rejects with Invalid for an address, Locked where another server takes connections.
 */
export async function serveState(options: ServeStateOptions): Promise<Server> {
  const { environment } = options;
  const addresses = options.listen.map((text) => parseListenAddress(text, options.directory));
  const stopping = new AbortController();
  const context: HandlerContext = {
    state: wrapCore(options.state, { environment }),
    environment,
    codec: new ResourceCodec(options.registry),
    stopping: stopping.signal,
    running: new RunningCalls(),
  };
  const server = new GrpcServer({
    'grpc.enable_channelz': 0,
    'grpc.keepalive_time_ms': 20_000,
    'grpc.keepalive_timeout_ms': 20_000,
    'grpc.http2.min_ping_interval_without_data_ms': 5_000,
    'grpc.max_receive_message_length': options.maximumRequestBytes ?? 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': 10_000,
  });
  server.addService(stateService as never, stateHandlers(context) as never);
  server.addService(controlService as never, controlHandlers(context, options.control) as never);
  const tracked = environment.open.track('server');
  const bound: string[] = [];
  try {
    for (const address of addresses) bound.push(await bind(server, address, environment));
  } catch (error) {
    server.forceShutdown();
    tracked[Symbol.dispose]();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    stopping.abort();
    await shutDown(server, bound, context, graceMs);
    for (const address of addresses) if (address.kind === 'unix') await environment.files.remove(address.path);
    tracked[Symbol.dispose]();
  };
  const stopOnce = (graceMs = 2_000): Promise<void> => {
    stopped ??= stop(graceMs);
    return stopped;
  };
  return { addresses: bound, stop: stopOnce, [Symbol.asyncDispose]: () => stopOnce() };
}

/** Time for the last answers to leave after their handlers are done, milliseconds. */
const flushMs = 100;

/** Ends when every connection has, but no later than shortly after the last call, or the grace. */
function shutDown(server: GrpcServer, bound: readonly string[], { environment, running }: HandlerContext, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    let done = false;
    const timers: Disposable[] = [];
    const finish = (): void => {
      if (done) return;
      done = true;
      for (const timer of timers) timer[Symbol.dispose]();
      server.forceShutdown();
      resolve();
    };
    // Connections are cut after the grace by this alone: forceShutdown knows none of them without channelz.
    for (const address of bound) server.drain(address.replace('grpc://', ''), graceMs);
    timers.push(environment.after(graceMs + flushMs, finish));
    // Its callback never comes when a client goes away in the same moment, so it cannot be the only sign.
    server.tryShutdown(finish);
    running.whenNone().then(() => void (done || timers.push(environment.after(flushMs, finish))));
  });
}

async function bind(server: GrpcServer, address: ListenAddress, environment: Environment): Promise<string> {
  if (address.kind === 'unix') {
    const { files } = environment;
    const folder = dirname(address.path);
    // The folder keeps others out before the socket is there; the socket's own mode comes with its creation, whatever the umask.
    if ((await files.stat(folder)) === undefined) await files.makeDirectory(folder, { mode: 0o700 });
    const before = await files.stat(address.path);
    if (before !== undefined && before.kind !== 'other')
      throw new SteadystateError('Invalid', `${address.path} exists and is no socket; choose another path`);
    if (before !== undefined) {
      // The caller's lock covers one store; a server of another store may stand behind the same path.
      if (await answers(`unix:${address.path}`))
        throw new SteadystateError('Locked', `a server is running at ${address.path}; stop it, or choose another path`, {
          holder: 'another server',
        });
      await files.remove(address.path);
    }
    await bindPort(server, `unix:${address.path}`);
    await files.changeMode(address.path, 0o600);
    return `unix:${address.path}`;
  }
  const port = await bindPort(server, `${address.host}:${address.port}`);
  return `grpc://${address.host}:${port}`;
}

/** Whether somebody takes connections there. */
function answers(target: string): Promise<boolean> {
  const client = new Client(target, credentials.createInsecure(), { 'grpc.enable_channelz': 0, 'grpc.use_local_subchannel_pool': 1 });
  const channel = client.getChannel();
  return new Promise<boolean>((resolve) => {
    const look = (): void => {
      const state = channel.getConnectivityState(true);
      if (state === connectivityState.READY) resolve(true);
      else if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN) resolve(false);
      else channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, look);
    };
    look();
  }).finally(() => client.close());
}

function bindPort(server: GrpcServer, target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(target, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else
        reject(
          new SteadystateError('Locked', `cannot listen on ${target}: ${error.message}; is another server running there?`, {
            cause: error,
            holder: 'another process',
          }),
        );
    });
  });
}
