import type { Pointer } from '../resource/index.ts';
import { findError, visibleText } from '../resource/index.ts';
import { ExitError, UsageError } from './exit-codes.ts';
import { shellWord } from './output/names.ts';

/** What standard error says of a failure: what and where by its message, then what to do. */
export function errorText(error: unknown): string {
  const message = messageOf(error);
  if (message === '') return '';
  const advice = adviceOf(error);
  return `${message}\n${advice === undefined || message.includes(advice) ? '' : `${advice}\n`}`;
}

/** The message of an error; only our own ones have more than one line. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof ExitError ? visibleLines(message) : visibleText(message);
}

/** Text of several lines, with tabs, with everything else that a terminal would obey shown. */
export function visibleLines(text: string): string {
  return text.replace(/[^\n\t]+/g, visibleText);
}

function words({ type, id, namespace }: Pointer): string {
  return `${shellWord(type)} ${shellWord(id)} -n ${shellWord(namespace)}`;
}

/** What to do about a failure, where its message does not say so. */
function adviceOf(error: unknown): string | undefined {
  if (error instanceof UsageError) return `see: steadystate ${error.command === undefined ? '' : `${error.command} `}--help`;
  const known = findError(error);
  const { pointer } = known ?? {};
  switch (known?.code) {
    case 'NotFound':
      return pointer && `see what there is: steadystate get ${shellWord(pointer.type)} -n ${shellWord(pointer.namespace)}`;
    case 'Conflict':
      if (pointer === undefined) return undefined;
      if (known.reason === 'phase')
        return `it is on its way out; ask: steadystate why ${words(pointer)}, or wait for its end with --for=destroyed`;
      if (known.reason === 'version') return `see what is there now: steadystate get ${words(pointer)} -o yaml`;
      return undefined;
    case 'Ambiguous':
      return pointer && `see whether it happened: steadystate get ${words(pointer)} -o yaml`;
    case 'Throttled':
      return 'the server is busy; try again in a while';
    case 'NoSpace':
      return 'make room on the disk of the store; reads and deletes go on meanwhile';
    default:
      return systemAdvice(error);
  }
}

/** What to do about a failure of the system, whose message says what was tried, and where. */
function systemAdvice(error: unknown): string | undefined {
  const { code, syscall } = error as { readonly code?: unknown; readonly syscall?: unknown };
  if (syscall === undefined || typeof code !== 'string') return undefined;
  if (/^(?:EACCES|EPERM|EROFS)$/.test(code)) return 'check the permissions of that path and of its folder';
  if (/^(?:ENOSPC|EDQUOT|EFBIG)$/.test(code)) return 'make room there, or use another place';
  if (code === 'ELOOP') return 'mend the link: it leads to itself';
  if (/^(?:EMFILE|ENFILE)$/.test(code)) return 'too many files are open; raise the limit: ulimit -n';
  return undefined;
}
