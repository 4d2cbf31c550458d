import { dirname } from 'node:path';
import { storeFileAdmin } from '../backends/sqlite/index.ts';
import { isUnavailableError, SteadystateError } from '../resource/index.ts';
import type { StoreAdmin } from '../state/index.ts';
import type { OpenedStore, StoreUrl } from '../stores/index.ts';
import { openStore, parseStoreUrl, storeUrlText } from '../stores/index.ts';
import type { CommandContext } from './context.ts';
import { ExitError, exitCodes } from './exit-codes.ts';
import { defaultFile, defaultSocket } from './session.ts';

/** The store that an administrator's command is about: a file that this process looks after, or one behind its server. */
export type StoreTarget = { readonly kind: 'file'; readonly file: string } | { readonly kind: 'server'; readonly opened: OpenedStore };

/** Finds the store: the one that `--store` names, else the server whose socket is here, else the file that is here. Opens no file. */
export async function withStoreTarget<Value>(context: CommandContext, work: (target: StoreTarget) => Promise<Value>): Promise<Value> {
  const { io, environment, options } = context;
  const open = (url: StoreUrl): Promise<OpenedStore> => openStore(url, { environment, directory: io.directory });
  const served = async (url: StoreUrl): Promise<Value> => {
    await using opened = await open(url);
    return await work({ kind: 'server', opened });
  };
  if (options.store !== undefined) {
    const url = parseStoreUrl(options.store, io.directory);
    return url.kind === 'sqlite' ? work({ kind: 'file', file: url.file }) : served(url);
  }
  const socket: StoreUrl = { kind: 'unix', path: defaultSocket(io.storeDirectory) };
  if ((await environment.files.stat(socket.path)) !== undefined) {
    let opened: OpenedStore | undefined;
    try {
      opened = await open(socket);
    } catch (error) {
      // A socket that nobody listens on is left over from a program that was killed.
      if (!isUnavailableError(error)) throw error;
    }
    if (opened !== undefined) {
      await using server = opened;
      return await work({ kind: 'server', opened: server });
    }
  }
  return work({ kind: 'file', file: defaultFile(io.storeDirectory) });
}

/** What looks after the store. */
export async function adminOf(target: StoreTarget, { environment }: CommandContext): Promise<StoreAdmin> {
  if (target.kind === 'server') {
    const { admin, url } = target.opened;
    if (admin === undefined)
      throw new SteadystateError(
        'Unsupported',
        `${storeUrlText(url)} keeps no file that could be looked after; name a store file, or its server`,
      );
    return admin;
  }
  if ((await environment.files.stat(target.file)) === undefined)
    throw new ExitError(exitCodes.notFound, `the store ${target.file} does not exist; name one with --store sqlite:PATH`);
  return storeFileAdmin({ file: target.file, environment });
}

/** The file of a store that nobody may have open. */
export function fileOf(target: StoreTarget, verb: string): string {
  if (target.kind === 'file') return target.file;
  const { control } = target.opened.remote ?? {};
  const url = storeUrlText(target.opened.url);
  if (control === undefined) throw new SteadystateError('Unsupported', `${url} is no file; name the store file: --store sqlite:PATH`);
  const holder = `process ${control.info.pid}`;
  throw new SteadystateError('Locked', `${control.info.store} is served by ${holder} at ${url}; stop it, then ${verb}`, { holder });
}

/** Makes the folder of a store that is about to be made. */
export async function makeFolder({ environment }: CommandContext, file: string): Promise<void> {
  const folder = dirname(file);
  if ((await environment.files.stat(folder)) === undefined) await environment.files.makeDirectory(folder, { mode: 0o700 });
}
