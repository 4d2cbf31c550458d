import { isAbsolute, resolve } from 'node:path';
import { invalid } from '../resource/index.ts';

/** A store, named. */
export type StoreUrl =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'grpc'; readonly host: string; readonly port: number; readonly tls: boolean }
  | { readonly kind: 'etcd' | 'kubernetes'; readonly text: string };

const forms = 'memory:, sqlite:PATH, unix:PATH, grpc://HOST:PORT, grpcs://HOST:PORT, etcd://HOST:PORT/PREFIX, kubernetes:';

/** Reads the URL of a store; relative paths start from `directory`. Invalid with the forms that there are. */
export function parseStoreUrl(text: string, directory: string): StoreUrl {
  const scheme = /^([a-z]+):/.exec(text)?.[1];
  switch (scheme) {
    case 'memory':
      if (text !== 'memory:') throw bad(text, 'memory: takes nothing behind the colon');
      return { kind: 'memory' };
    case 'sqlite':
      return { kind: 'sqlite', file: pathOf(text, 'sqlite:', directory) };
    case 'unix':
      return { kind: 'unix', path: pathOf(text, 'unix:', directory) };
    case 'grpc':
    case 'grpcs': {
      const parts = /^grpcs?:\/\/(\[[0-9a-fA-F:.]+\]|[^/:@?#\s]+):([0-9]{1,5})\/?$/.exec(text);
      const port = Number(parts?.[2]);
      if (parts === null || port < 1 || port > 65_535) throw bad(text, `expected ${scheme}://HOST:PORT`);
      return { kind: 'grpc', host: parts[1] as string, port, tls: scheme === 'grpcs' };
    }
    case 'etcd':
    case 'kubernetes':
      return { kind: scheme, text };
    default:
      throw bad(text, `expected one of ${forms}`);
  }
}

function pathOf(text: string, scheme: string, directory: string): string {
  const rest = text.slice(scheme.length);
  // unix:///abs and sqlite:///abs are written with an empty host, too.
  const path = rest.startsWith('///') ? rest.slice(2) : rest;
  if (path === '') throw bad(text, 'expected a path behind the colon');
  if (path.startsWith('//')) throw bad(text, 'a file has no host: write one slash, or three');
  const whole = isAbsolute(path) ? path : resolve(directory, path);
  // An address of gRPC is one line.
  if (scheme === 'unix:' && /[\r\n\u2028\u2029]/.test(whole)) throw bad(text, 'a socket cannot be reached at a path with a line break');
  return whole;
}

function bad(text: string, message: string) {
  return invalid([{ path: 'store', message: `${message}, found ${JSON.stringify(text)}` }]);
}

/** The text of a store's URL. */
export function storeUrlText(url: StoreUrl): string {
  switch (url.kind) {
    case 'memory':
      return 'memory:';
    case 'sqlite':
      return `sqlite:${url.file}`;
    case 'unix':
      return `unix:${url.path}`;
    case 'grpc':
      return `${url.tls ? 'grpcs' : 'grpc'}://${url.host}:${url.port}`;
    default:
      return url.text;
  }
}
