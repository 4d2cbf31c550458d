import { join } from 'node:path';
import type { ControlClient } from '../backends/remote/index.ts';
import type { Environment } from '../environment/index.ts';
import type { Pointer, Readiness, Resource } from '../resource/index.ts';
import { isUnavailableError } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { wrapCore } from '../state/index.ts';
import type { StoreUrl } from '../stores/index.ts';
import { parseStoreUrl, storeUrlText } from '../stores/index.ts';
import { ExitError, exitCodes } from './exit-codes.ts';
import type { CliIo } from './io.ts';
import { openPatiently } from './open-patiently.ts';

/** The folder that holds a store of the program's own. */
export const storeFolder = '.steadystate';

/** A store that commands talk to, and what its server knows beyond the state. */
export interface Session extends AsyncDisposable {
  readonly url: StoreUrl;
  readonly state: State;
  /** `undefined`: the store was opened by this process, or its server is not one of ours. */
  readonly control: ControlClient | undefined;
  /** Checks resources as the server would. */
  validate(resources: readonly Resource[]): Promise<{
    readonly problems: readonly { readonly index: number; readonly path: string; readonly message: string }[];
    readonly resources: readonly Resource[];
  }>;
  /** `undefined`: the type cannot tell. */
  readiness(pointer: Pointer): Promise<{ readonly readiness: Readiness; readonly version: string } | undefined>;
}

export interface ConnectOptions {
  readonly store: string | undefined;
  readonly io: CliIo;
  readonly environment: Environment;
  /** Whether a store file may be made. */
  readonly create?: boolean;
}

/** There is no store where one was looked for. */
export class NoStoreError extends ExitError {
  override readonly name: string = 'NoStoreError';
}

/** The address of the server in a folder. */
export function defaultSocket(directory: string): string {
  return join(directory, storeFolder, 'api.sock');
}

export function defaultFile(directory: string): string {
  return join(directory, storeFolder, 'state.db');
}

/**
 * Connects to the store that `--store` names, else to the server whose socket is here, else opens the store file that is
 * here. A look never makes a file.
 */
export async function connect({ store, io, environment, create = false }: ConnectOptions): Promise<Session> {
  if (store !== undefined) {
    const url = parseStoreUrl(store, io.directory);
    if (url.kind === 'sqlite' && !create && (await environment.files.stat(url.file)) === undefined) {
      throw new ExitError(
        exitCodes.notFound,
        `the store ${storeUrlText(url)} does not exist; start one with: steadystate serve --store ${storeUrlText(url)}`,
      );
    }
    return openSession(url, io, environment);
  }
  const socket: StoreUrl = { kind: 'unix', path: defaultSocket(io.storeDirectory) };
  if ((await environment.files.stat(socket.path)) !== undefined) {
    try {
      return await openSession(socket, io, environment);
    } catch (error) {
      // A socket that nobody listens on is left over from a program that was killed.
      if (!isUnavailableError(error)) throw error;
    }
  }
  const file: StoreUrl = { kind: 'sqlite', file: defaultFile(io.storeDirectory) };
  if ((await environment.files.stat(file.file)) === undefined) {
    throw new NoStoreError(
      exitCodes.failed,
      `no store here: neither ${storeUrlText(socket)} answers nor does ${file.file} exist; start one with: steadystate up, or name one with --store`,
    );
  }
  return openSession(file, io, environment);
}

async function openSession(url: StoreUrl, io: CliIo, environment: Environment): Promise<Session> {
  const opened = await openPatiently({ io, environment }, url);
  const control = opened.remote?.control;
  const state = wrapCore(opened.state, { environment });
  return {
    url,
    state,
    control,
    validate: async (resources) =>
      control === undefined ? (await import('./local-control.ts')).validateLocally(resources) : control.validate(resources),
    readiness: async (pointer) =>
      control === undefined ? (await import('./local-control.ts')).readinessOf(state, pointer) : control.readiness(pointer),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
