import { setMaxListeners } from 'node:events';
import type { ListenOptions } from 'node:net';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { Environment } from '../environment/index.ts';
import { guarded } from '../environment/index.ts';
import type { DefinitionRegistry } from '../resource/index.ts';
import { invalid, SteadystateError } from '../resource/index.ts';
import type { CoreState } from '../state/index.ts';
import { wrapCore } from '../state/index.ts';
import { ResourceCodec } from '../wire/index.ts';
import type { ListenAddress } from './access.ts';
import { parseListenAddress } from './access.ts';
import type { HandlerContext } from './context.ts';
import type { ControlProvider } from './control-methods.ts';
import { controlMethods } from './control-methods.ts';
import { FrameCache } from './frame-cache.ts';
import { GrpcServer } from './grpc/grpc-server.ts';
import type { ServerLimits } from './grpc/limits.ts';
import { defaultLimits } from './grpc/limits.ts';
import { healthMethods } from './health-methods.ts';
import { reflectionMethods, serviceNames } from './reflection-methods.ts';
import { stateMethods } from './state-methods.ts';
import { Turns } from './turns.ts';

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
  /** What clients may use; those left out have the defaults of `ServerLimits`. */
  readonly limits?: Partial<ServerLimits>;
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
  const environment = guarded(options.environment);
  const addresses = options.listen.map((text) => parseListenAddress(text, options.directory));
  const stopping = new AbortController();
  // Every watch listens.
  setMaxListeners(0, stopping.signal);
  const context: HandlerContext = {
    state: wrapCore(options.state, { environment }),
    environment,
    codec: new ResourceCodec(options.registry),
    stopping: stopping.signal,
    frames: new FrameCache(),
    turns: new Turns(environment),
    revision: options.control.revision && (() => options.control.revision?.() ?? 0),
  };
  const methods = [
    ...stateMethods(context),
    ...controlMethods(context, options.control),
    ...healthMethods(context, new Set(serviceNames)),
    ...reflectionMethods(),
  ];
  const server = new GrpcServer(environment, methods, checkLimits({ ...defaultLimits, ...options.limits }));
  const tracked = environment.open.track('server');
  const bound: string[] = [];
  const sockets = new Map<string, string>();
  try {
    for (const address of addresses) {
      bound.push(await bind(server, address, environment));
      if (address.kind === 'unix') sockets.set(address.path, (await environment.files.stat(address.path))?.identity ?? '');
    }
  } catch (error) {
    await server.close(0);
    tracked[Symbol.dispose]();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    stopping.abort();
    // The system removes the path of a socket that is closed, whoever's it is by now.
    const putBack = await setAside(sockets, environment);
    const closed = server.close(graceMs);
    await putBack();
    await closed;
    tracked[Symbol.dispose]();
  };
  const stopOnce = (graceMs = 2_000): Promise<void> => {
    stopped ??= stop(graceMs);
    return stopped;
  };
  return { addresses: bound, stop: stopOnce, [Symbol.asyncDispose]: () => stopOnce() };
}

function checkLimits(limits: ServerLimits): ServerLimits {
  const wrong = Object.entries(limits).filter(([, value]) => !(Number.isSafeInteger(value) && value > 0));
  if (wrong.length === 0) return limits;
  throw invalid(
    wrong.map(([name, value]) => ({ path: `limits.${name}`, message: `expected a whole number above zero, found ${String(value)}` })),
  );
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
      if (await answers(address.path))
        throw new SteadystateError('Locked', `a server is running at ${address.path}; stop it, or choose another path`, {
          holder: 'another server',
        });
      await files.remove(address.path);
    }
    await listen(server, { path: address.path }, `unix:${address.path}`);
    await files.changeMode(address.path, 0o600);
    return `unix:${address.path}`;
  }
  const host = address.host.replace(/^\[|\]$/g, '');
  const port = await listen(server, { host, port: address.port }, `${address.host}:${address.port}`);
  return `grpc://${address.host}:${port}`;
}

/** Moves sockets away that have taken the place of ours, as after somebody removed ours and started another server. */
async function setAside(sockets: ReadonlyMap<string, string>, { files, log }: Environment): Promise<() => Promise<void>> {
  const move = async (from: string, to: string): Promise<void> => {
    try {
      await files.rename(from, to);
    } catch (error) {
      // A server must end all the same.
      log.log('warn', 'the socket of another server could not be moved out of the way, and back', { path: from, error });
    }
  };
  const foreign: string[] = [];
  for (const [path, identity] of sockets) {
    const found = await files.stat(path);
    if (found !== undefined && found.identity !== identity) foreign.push(path);
  }
  for (const path of foreign) await move(path, `${path}~`);
  return async () => {
    for (const path of foreign) await move(`${path}~`, path);
  };
}

/** Whether somebody takes connections there. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      resolve(true);
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
}

async function listen(server: GrpcServer, where: ListenOptions, target: string): Promise<number> {
  try {
    return await server.listen(where);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new SteadystateError('Locked', `cannot listen on ${target}: ${said}; is another server running there?`, {
      cause: error,
      holder: 'another process',
    });
  }
}
