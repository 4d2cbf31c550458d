import type { ErrorCode } from '../resource/index.ts';
import { findError, visibleText } from '../resource/index.ts';

export const exitCodes = { ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, timedOut: 5, differences: 6, interrupted: 130 } as const;

/** The command was used wrongly: exit code 2. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
  /** Whose help says how. */
  command: string | undefined;

  /** On one line, whatever was typed. */
  constructor(message: string) {
    super(visibleText(message));
  }
}

/** Ends a command with a code; its message, if any, goes to standard error. It may have several lines: what comes from outside must not. */
export class ExitError extends Error {
  override readonly name: string = 'ExitError';
  readonly exitCode: number;
  constructor(exitCode: number, message = '') {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A watch that nobody ended has ended: what it was to tell is not known. */
export function watchEnded(): ExitError {
  return new ExitError(exitCodes.failed, 'the watch ended: the store was closed');
}

const byCode: Partial<Record<ErrorCode, number>> = {
  NotFound: exitCodes.notFound,
  Conflict: exitCodes.conflict,
  Timeout: exitCodes.timedOut,
};

/** The exit code that an error stands for. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof ExitError) return error.exitCode;
  if (error instanceof UsageError) return exitCodes.usage;
  const code = findError(error)?.code;
  return (code && byCode[code]) ?? exitCodes.failed;
}
