import { spawn } from 'node:child_process';
import { addAbortListener } from 'node:events';
import { checkDirectory } from './diagnose-command.ts';
import type { OpenCounter } from './open-counter.ts';
import type { ProcessExit, ProcessPort } from './processes.ts';
import { exitOf, kill, started } from './spawned.ts';

const outputLimit = 64 * 1024;

/** How long the output of a command that has ended is waited for. */
const drainMs = 500;

/** Runs a command to its end in a group of its own. Limits, aborts and what it leaves behind end that group. */
export async function runToEnd(open: OpenCounter, request: Parameters<ProcessPort['run']>[0]): ReturnType<ProcessPort['run']> {
  request.signal?.throwIfAborted();
  await checkDirectory(request.directory);
  const [program, ...rest] = request.command;
  const child = spawn(program, rest, {
    cwd: request.directory,
    env: request.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await started(child);
  using _tracked = open.track('child');
  const chunks: Buffer[] = [];
  let size = 0;
  const collect = (chunk: Buffer): void => {
    if (size < outputLimit) chunks.push(chunk);
    size += chunk.length;
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  let timedOut = false;
  const killAll = (): void => void kill(-(child.pid as number), 'SIGKILL');
  const timer = setTimeout(() => {
    timedOut = true;
    killAll();
  }, request.limitMs);
  const listener = request.signal && addAbortListener(request.signal, killAll);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let exit: ProcessExit;
  try {
    exit = await new Promise((resolve) => child.once('exit', (code, signal) => resolve(exitOf(code, signal))));
  } finally {
    clearTimeout(timer);
    listener?.[Symbol.dispose]();
  }
  // What the command left behind in its group would keep the pipes open; what left its group is out of reach, and may.
  killAll();
  let late: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (late = setTimeout(resolve, drainMs)))]);
  clearTimeout(late);
  child.stdout.destroy();
  child.stderr.destroy();
  request.signal?.throwIfAborted();
  return { ...exit, output: Buffer.concat(chunks).subarray(0, outputLimit).toString('utf8'), timedOut };
}
