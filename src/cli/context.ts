import type { Environment } from '../environment/index.ts';
import { UsageError } from './exit-codes.ts';
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
