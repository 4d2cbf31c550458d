import type { ChildProcess } from 'node:child_process';
import type { ProcessExit } from './processes.ts';

/** Resolves when the child runs; rejects when it could not be started. */
export function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

export function exitOf(code: number | null, signal: NodeJS.Signals | null): ProcessExit {
  return { ...(code !== null && { code }), ...(signal !== null && { signal }) };
}

/** Signals a process, or a group by its negative number; `false` when nobody is there. */
export function kill(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
