import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SteadystateError, visibleText } from '../../resource/index.ts';
import { parseListenAddress } from '../../server/index.ts';
import { parseStoreUrl, storeUrlText } from '../../stores/index.ts';
import type { CommandContext } from '../context.ts';
import { asUsage } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { openPatiently } from '../open-patiently.ts';
import type { ServeModule } from '../operator.ts';
import { startOperator } from '../operator.ts';
import { defaultFile, defaultSocket } from '../session.ts';

export interface ServeOptions {
  readonly listen: readonly string[];
}

/** `serve [MODULE…] [--listen URL]…` */
export async function serveCommand(context: CommandContext, modules: readonly string[], options: ServeOptions): Promise<number> {
  const { io, environment } = context;
  for (const address of options.listen) asUsage('--listen', () => parseListenAddress(address, io.directory));
  const loaded: ServeModule[] = [];
  for (const name of modules) loaded.push(await loadModule(name, io.directory));
  const url = parseStoreUrl(context.options.store ?? `sqlite:${defaultFile(io.storeDirectory)}`, io.directory);
  await using store = await openPatiently(context, url);
  const listen = options.listen.length > 0 ? options.listen : [`unix:${defaultSocket(io.storeDirectory)}`];
  const operator = await startOperator({ environment, store, listen, directory: io.directory, modules: loaded, host: false });
  io.write(`${visibleText(`serving ${storeUrlText(store.url)} at ${operator.server.addresses.join(', ')}`)}\n`);
  await operator.run(io.signal);
  return exitCodes.ok;
}

/** Loads a module of an operator by the path that a person typed. */
export async function loadModule(name: string, directory: string): Promise<ServeModule> {
  const path = resolve(directory, name);
  if (/\.[cm]?tsx?$/.test(path) && !(process.features as { readonly typescript?: unknown }).typescript) {
    throw new SteadystateError(
      'Unsupported',
      `${name} is TypeScript, and this version of Node (${process.version}) does not strip types; build it and name the .js or .mjs file, or use Node 22.18 or newer`,
    );
  }
  try {
    return (await import(pathToFileURL(path).href)) as ServeModule;
  } catch (cause) {
    throw new SteadystateError(
      'Invalid',
      `the module ${name} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
