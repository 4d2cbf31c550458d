import { terminalError } from './errors.ts';

/** What an author's function answered, if it is a boolean or an object: JavaScript lets a `return` be forgotten. */
export function checkedAnswer<Answer extends object>(what: string, answer: boolean | Answer, field: keyof Answer & string): Answer {
  if (typeof answer === 'boolean') return { [field]: answer } as unknown as Answer;
  if (typeof answer === 'object' && answer !== null && typeof answer[field] === 'boolean') return answer;
  const found = typeof answer === 'object' && answer !== null ? `an object without ${field}` : String(answer);
  throw terminalError('InvalidAnswer', `${what} answered ${found}; expected true, false, or { ${field}, reason, message }`);
}
