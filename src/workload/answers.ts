import type { Readiness } from '../resource/index.ts';
import { terminalError } from './errors.ts';

export const timeExpected = 'expected a finite number of milliseconds from 0';

export function isTime(ms: unknown): ms is number {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
}

/** Fields that an answer may have beside its decision. */
interface Fields {
  readonly ready?: unknown;
  readonly requeueAfterMs?: unknown;
}

/** What an author's function answered, if it is a boolean or an object of the right form: JavaScript lets a `return` be forgotten. */
export function checkedAnswer<Answer extends object>(what: string, answer: boolean | Answer, field: keyof Answer & string): Answer {
  if (typeof answer === 'boolean') return { [field]: answer } as unknown as Answer;
  if (typeof answer !== 'object' || answer === null || typeof answer[field] !== 'boolean') {
    const found = typeof answer === 'object' && answer !== null ? `an object without ${field}` : String(answer);
    throw wrong(`${what} answered ${found}; expected true, false, or { ${field}, reason, message }`);
  }
  const { ready, requeueAfterMs } = answer as Fields;
  if (ready !== undefined && typeof ready !== 'boolean') throw wrong(`${what} answered ready: ${shown(ready)}; expected true or false`);
  if (requeueAfterMs !== undefined && !isTime(requeueAfterMs))
    throw wrong(`${what} answered requeueAfterMs: ${shown(requeueAfterMs)}; ${timeExpected}`);
  return answer;
}

const statuses: readonly unknown[] = ['Current', 'InProgress', 'Failed', 'Terminating', 'NotFound'];

/** What a rule of readiness answered, with a reason and a message: what is left out would never compare equal to what was read. */
export function checkedReadiness(answer: unknown): Readiness {
  const what = 'the rule of readiness';
  if (typeof answer !== 'object' || answer === null)
    throw wrong(`${what} answered ${shown(answer)}; expected { status, reason, message }, or undefined`);
  const { status, reason, message, recheckAfterMs } = answer as Partial<Readiness>;
  if (status === undefined || !statuses.includes(status))
    throw wrong(`${what} answered status: ${shown(status)}; expected one of ${statuses.join(', ')}`);
  for (const [name, text] of Object.entries({ reason, message }))
    if (text !== undefined && typeof text !== 'string') throw wrong(`${what} answered ${name}: ${shown(text)}; expected text`);
  if (recheckAfterMs !== undefined && !(isTime(recheckAfterMs) && recheckAfterMs > 0))
    throw wrong(`${what} answered recheckAfterMs: ${shown(recheckAfterMs)}; expected a finite number of milliseconds above 0`);
  return reason === undefined || message === undefined
    ? { ...(answer as Readiness), reason: reason ?? status, message: message ?? '' }
    : (answer as Readiness);
}

function wrong(message: string): Error {
  return terminalError('InvalidAnswer', message);
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'an object' : typeof value === 'function' ? 'a function' : String(value);
}
