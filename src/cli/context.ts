import type { Environment } from '../environment/index.ts';
import { findError, nameProblem } from '../resource/index.ts';
import { parseStoreUrl } from '../stores/index.ts';
import { ExitError, exitCodes, UsageError } from './exit-codes.ts';
import type { CliIo } from './io.ts';
import { parseDuration } from './output/age.ts';
import type { Session } from './session.ts';
import { connect } from './session.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly store?: string;
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly output?: string;
  readonly timeout?: string;
}

/** What a command runs with. */
export interface CommandContext {
  readonly io: CliIo;
  readonly environment: Environment;
  readonly options: GlobalOptions;
}

/** Runs something on the store of the options, and closes it. */
export async function withSession<Value>(
  context: CommandContext,
  work: (session: Session) => Promise<Value>,
  more: { readonly create?: boolean } = {},
): Promise<Value> {
  await using session = await connect({ store: context.options.store, io: context.io, environment: context.environment, ...more });
  return await work(session);
}

/** Milliseconds of `--timeout`. */
export function timeoutMs({ options }: CommandContext, otherwise: number | undefined): number | undefined {
  if (options.timeout === undefined) return otherwise;
  const parsed = parseDuration(options.timeout);
  if (parsed === undefined) throw new UsageError(`--timeout: expected a duration such as 30s or 5m, found ${options.timeout}`);
  return parsed;
}

/** Refuses what would be noticed late or never. */
export function checkGlobalOptions(context: CommandContext): void {
  timeoutMs(context, undefined);
  const { namespace, allNamespaces, store } = context.options;
  if (namespace !== undefined && allNamespaces === true)
    throw new UsageError('-n and -A cannot be combined: one namespace, or all of them');
  const problem = namespace === undefined ? undefined : nameProblem(namespace);
  if (problem !== undefined) throw new UsageError(`-n: ${problem}`);
  if (store !== undefined) asUsage('--store', () => parseStoreUrl(store, context.io.directory));
}

/** What a person typed and nobody can read is wrong use, and names the option. */
export function asUsage<Value>(option: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    const known = findError(error);
    if (known?.code !== 'Invalid') throw error;
    throw new UsageError(`${option}: ${known.issues.map(({ message }) => message).join('; ') || known.message}`);
  }
}

/** Gives up after `--timeout`. What was sent to a server may have happened. */
export async function withinTimeout(context: CommandContext, work: () => Promise<number>): Promise<number> {
  const limitMs = timeoutMs(context, undefined);
  if (limitMs === undefined) return await work();
  using limit = deadline(context, limitMs);
  const expired = new Promise<never>((_resolve, reject) => {
    limit.signal.addEventListener('abort', () => {
      if (limit.expired())
        reject(new ExitError(exitCodes.timedOut, `timed out after ${context.options.timeout}; give it more with --timeout`));
    });
  });
  return await Promise.race([work(), expired]);
}

/** A signal that aborts with the command's, or after a while; dispose it. */
export function deadline(
  context: CommandContext,
  afterMs: number | undefined,
): Disposable & { readonly signal: AbortSignal; readonly expired: () => boolean; readonly stop: () => void } {
  const aborter = new AbortController();
  const { signal } = context.io;
  let expired = false;
  const stop = (): void => aborter.abort(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const timer =
    afterMs === undefined
      ? undefined
      : context.environment.after(afterMs, () => {
          expired = true;
          aborter.abort(new Error('the time ran out'));
        });
  return {
    signal: aborter.signal,
    expired: () => expired,
    stop,
    [Symbol.dispose]: () => {
      timer?.[Symbol.dispose]();
      signal.removeEventListener('abort', stop);
    },
  };
}
