/** What clients may use of a server. All are on by default; each is a whole number above zero. */
export interface ServerLimits {
  /** Largest request, bytes, after it was inflated. @default 4 MiB */
  readonly requestBytes: number;
  /** Bytes of requests that one connection may have on their way or being answered. @default 64 MiB */
  readonly requestBytesPerConnection: number;
  /** The same of all connections together. @default 256 MiB */
  readonly requestBytesInTotal: number;
  /** Bytes of answers of one connection that wait to be read by its client; those of watches and lists are bounded by themselves. @default 64 MiB */
  readonly answerBytesPerConnection: number;
  /** Connections. One more takes the place of the one that has been idle longest; when none is idle it is refused. @default 4_096 */
  readonly connections: number;
  /** Watches that one connection may have open. @default 2_000 */
  readonly watchesPerConnection: number;
  /** Watches of all connections together. @default 20_000 */
  readonly watchesInTotal: number;
  /** Calls other than watches that one connection may have open, those that block included. @default 2_000 */
  readonly callsPerConnection: number;
  /** How long a client may take to greet, and to send one request, milliseconds. @default 10_000 */
  readonly requestMs: number;
  /** A connection is asked for a sign of life this often, milliseconds. @default 20_000 */
  readonly keepaliveMs: number;
  /** It is cut when none came for this long after that, milliseconds. @default 20_000 */
  readonly keepaliveTimeoutMs: number;
}

export const defaultLimits: ServerLimits = {
  requestBytes: 4 * 1024 * 1024,
  requestBytesPerConnection: 64 * 1024 * 1024,
  requestBytesInTotal: 256 * 1024 * 1024,
  answerBytesPerConnection: 64 * 1024 * 1024,
  connections: 4_096,
  watchesPerConnection: 2_000,
  watchesInTotal: 20_000,
  callsPerConnection: 2_000,
  requestMs: 10_000,
  keepaliveMs: 20_000,
  keepaliveTimeoutMs: 20_000,
};
