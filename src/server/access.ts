import { isAbsolute, resolve } from 'node:path';
import { invalid } from '../resource/index.ts';

/** Longest path of a unix socket, bytes: above it some Node versions make a truncated path elsewhere. */
export const maximumSocketPath = 100;

/** Where to listen: `unix:./run/api.sock`, `unix:///abs/api.sock` or `grpc://127.0.0.1:port` (loopback only). */
export type ListenAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** Reads a listening address. Invalid with what was expected. */
export function parseListenAddress(text: string, directory: string): ListenAddress {
  if (text.startsWith('unix:')) return { kind: 'unix', path: socketPath(text, directory) };
  const tcp = /^grpc:\/\/(127\.[0-9.]+|localhost|\[::1\]):([0-9]+)$/.exec(text);
  if (tcp !== null) return { kind: 'tcp', host: tcp[1] as string, port: Number(tcp[2]) };
  const wide = text.startsWith('grpc:') || text.startsWith('grpcs:');
  throw invalid([
    {
      path: 'listen',
      message: wide
        ? `${text} is not a loopback address; a server without identities listens on unix sockets and loopback only`
        : `expected unix:PATH or grpc://127.0.0.1:PORT, found ${text}`,
    },
  ]);
}

/** The absolute path of a `unix:` address. */
export function socketPath(text: string, directory: string): string {
  const rest = text.slice('unix:'.length);
  const given = rest.startsWith('//') ? rest.slice(2) : rest;
  const path = isAbsolute(given) ? given : resolve(directory, given);
  const bytes = Buffer.byteLength(path);
  if (given === '' || bytes > maximumSocketPath) {
    throw invalid([
      {
        path: 'listen',
        message:
          given === ''
            ? 'expected a path after unix:'
            : `the socket path ${path} has ${bytes} bytes; at most ${maximumSocketPath} work everywhere, choose a shorter folder`,
      },
    ]);
  }
  if (/[\r\n\u2028\u2029]/.test(path))
    throw invalid([
      { path: 'listen', message: `the socket path ${path} holds a line break, which no client can name; choose another folder` },
    ]);
  return path;
}
