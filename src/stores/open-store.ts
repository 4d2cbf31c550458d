import { dirname } from 'node:path';
import type { RemoteState } from '../backends/remote/index.ts';
import type { Environment } from '../environment/index.ts';
import type { DefinitionRegistry } from '../resource/index.ts';
import { SteadystateError } from '../resource/index.ts';
import type { CoreState, StoreAdmin } from '../state/index.ts';
import type { StoreUrl } from './store-url.ts';
import { parseStoreUrl, storeUrlText } from './store-url.ts';

export interface OpenStoreOptions {
  readonly environment: Environment;
  /** What relative paths start from. */
  readonly directory: string;
  /** Definitions whose protobuf forms are used over the wire. */
  readonly registry?: DefinitionRegistry;
}

/** A store that was opened by its URL. */
export interface OpenedStore extends AsyncDisposable {
  readonly url: StoreUrl;
  readonly state: CoreState;
  /** Set for a store behind a server. */
  readonly remote?: RemoteState;
  /** Set for a store that this process owns. */
  readonly storeId?: string;
  readonly revision?: () => number;
  /** Looks after the store; set where it has a file of its own, here or behind its server. */
  readonly admin?: StoreAdmin;
}

/** Opens a store, loading only what it needs. Unsupported for kinds of stores that this version cannot open. */
export async function openStore(url: string | StoreUrl, options: OpenStoreOptions): Promise<OpenedStore> {
  const parsed = typeof url === 'string' ? parseStoreUrl(url, options.directory) : url;
  const { environment, registry } = options;
  switch (parsed.kind) {
    case 'memory': {
      const { memoryState } = await import('../backends/memory/index.ts');
      const state = memoryState({ environment });
      return {
        url: parsed,
        state,
        storeId: state.storeId,
        revision: () => state.revision,
        [Symbol.asyncDispose]: () => state[Symbol.asyncDispose](),
      };
    }
    case 'sqlite': {
      const { openSqliteState } = await import('../backends/sqlite/index.ts');
      const folder = dirname(parsed.file);
      if ((await environment.files.stat(folder)) === undefined) await environment.files.makeDirectory(folder, { mode: 0o700 });
      const state = await openSqliteState({ file: parsed.file, environment, readBehindFrom: Number.POSITIVE_INFINITY });
      return {
        url: parsed,
        state,
        storeId: state.storeId,
        admin: state.admin,
        revision: () => state.revision,
        [Symbol.asyncDispose]: () => state[Symbol.asyncDispose](),
      };
    }
    case 'unix':
    case 'grpc': {
      if (parsed.kind === 'grpc' && parsed.tls)
        throw notYet(parsed, 'TLS to a server is not offered by this version; use grpc:// on loopback or a unix socket');
      const { openRemoteState } = await import('../backends/remote/index.ts');
      const address = parsed.kind === 'unix' ? `unix:${parsed.path}` : `${parsed.host}:${parsed.port}`;
      const remote = await openRemoteState({ address, environment, ...(registry && { registry }) });
      return {
        url: parsed,
        state: remote,
        remote,
        ...(remote.control && { admin: remote.control.store }),
        [Symbol.asyncDispose]: () => remote[Symbol.asyncDispose](),
      };
    }
    default:
      throw notYet(parsed, `stores of kind ${parsed.kind} are not offered by this version; use sqlite:, memory:, unix: or grpc://`);
  }
}

function notYet(url: StoreUrl, message: string): SteadystateError {
  return new SteadystateError('Unsupported', `${storeUrlText(url)}: ${message}`);
}
