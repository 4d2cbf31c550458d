import { RE2JS } from 're2js';
import type { Environment } from '../environment/index.ts';
import { addressOf } from './address.ts';
import type { ProcessSpec } from './process-definition.ts';

const defaultLimitMs = 5_000;

/** Runs the check of a process once: what is wrong, or `undefined` when it passed. */
export async function checkOnce(environment: Environment, spec: ProcessSpec, signal: AbortSignal): Promise<string | undefined> {
  const { http, tcp, command, limitMs = defaultLimitMs } = spec.ready ?? {};
  try {
    if (http !== undefined) {
      const { status } = await environment.network.http({ url: http, limitMs, signal, statusOnly: true });
      return status >= 200 && status < 400 ? undefined : `${http} answered ${status}`;
    }
    if (tcp !== undefined) {
      const address = addressOf(tcp);
      if (address === undefined) return `${tcp} is no address; expected host:port, or a port`;
      await environment.network.connect({ ...address, limitMs, signal });
      return undefined;
    }
    if (command !== undefined) {
      const {
        code,
        signal: by,
        output,
        timedOut,
      } = await environment.processes.run({
        command,
        directory: spec.directory,
        environment: { ...environment.processes.inherited(), ...spec.environment },
        limitMs,
        signal,
      });
      if (timedOut) return `the check ${command[0]} did not end within ${limitMs} ms`;
      if (code === 0) return undefined;
      const last = output.trim().split('\n').at(-1) ?? '';
      return `the check ${command[0]} ${code === undefined ? `was ended by ${by}` : `exited with ${code}`}${last === '' ? '' : `: ${last.slice(0, 200)}`}`;
    }
  } catch (error) {
    signal.throwIfAborted();
    return `${http ?? tcp ?? command?.[0]}: ${error instanceof Error ? error.message || (error as { code?: string }).code || error.name : String(error)}`;
  }
  return undefined;
}

/** What a line of output must be like for a `log` check. */
export function lineMatcher(log: string | { readonly expression: string }): (line: string) => boolean {
  if (typeof log === 'string') return (line) => line.includes(log);
  const expression = RE2JS.compile(log.expression);
  return (line) => expression.matcher(line).find();
}
