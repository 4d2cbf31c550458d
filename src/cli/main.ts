#!/usr/bin/env node
import { resolve } from 'node:path';
import { lineLogger, nodeEnvironment } from '../environment/index.ts';
import { callerText } from './caller.ts';
import { ExitError, exitCodes } from './exit-codes.ts';
import type { CliIo } from './io.ts';
import { openEditor } from './open-editor.ts';
import { runCli } from './program.ts';
import { watchReader } from './reader-gone.ts';

const aborter = new AbortController();
const { stdout, stderr } = process;
const environment = nodeEnvironment();

// The reader of a pipe, or the terminal, has gone: a quiet end. Anything else, such as a full disk, has lost what was printed.
let lost: Error | undefined;
stdout.on('error', (error: NodeJS.ErrnoException) => {
  const gone = error.code === 'EPIPE' || error.code === 'ECONNRESET' || (error.code === 'EIO' && stdout.isTTY);
  if (!gone) lost ??= error;
  aborter.abort();
});
stderr.on('error', () => aborter.abort());

let interrupts = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupts++;
    if (interrupts > 1) {
      if (environment.open.counts().storeCall === undefined) process.exit(exitCodes.interrupted);
      // An exit would end the thread of the store in the midst of its work, which aborts with noise; the signal does not.
      for (const each of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(each);
      process.kill(process.pid, 'SIGINT');
      return;
    }
    aborter.abort(new ExitError(exitCodes.interrupted));
  });
}

const noColor = process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '';
// It draws nothing in place and knows no colours.
const isDumb = process.env.TERM === 'dumb';
const io: CliIo = {
  write: (text) => void stdout.write(text),
  draw: (text) => void stdout.write(text),
  writeError: (text) => void stderr.write(text),
  drawError: (text) => void stderr.write(text),
  isTerminal: stdout.isTTY === true && !isDumb,
  errorIsTerminal: stderr.isTTY === true && !isDumb,
  columns: () => (stdout.isTTY ? stdout.columns : stderr.isTTY ? stderr.columns : 0),
  rows: () => (stdout.isTTY ? stdout.rows : 0),
  color: stdout.isTTY === true && !isDumb && !noColor && !process.argv.includes('--no-color'),
  caller: callerText,
  variables: process.env,
  // npm changes to the package's folder; INIT_CWD is where the person is.
  directory: resolve(process.env.INIT_CWD ?? process.cwd()),
  storeDirectory: process.cwd(),
  readStandardInput: async () => (await import('./read-text.ts')).readText(process.stdin, '<stdin>'),
  standardInput: () => process.stdin,
  drained: () =>
    stdout.writableNeedDrain && !aborter.signal.aborted
      ? new Promise((resolve) => {
          const settle = (): void => {
            stdout.off('drain', settle);
            aborter.signal.removeEventListener('abort', settle);
            resolve();
          };
          stdout.on('drain', settle);
          aborter.signal.addEventListener('abort', settle);
        })
      : Promise.resolve(),
  watchReader: () => watchReader(() => aborter.abort()),
  openEditor,
  signal: aborter.signal,
};

const log = lineLogger({
  write: (line) => io.writeError(`${line}\n`),
  timestamp: () => environment.timestamp(),
  level: process.env.STEADYSTATE_LOG === 'debug' ? 'debug' : process.env.STEADYSTATE_LOG === 'info' ? 'info' : 'error',
});
const exitCode = await runCli(process.argv.slice(2), io, { ...environment, log });
// A pipe may not have taken all yet.
for (const stream of [stdout, stderr]) await new Promise<void>((resolve) => stream.write('', () => resolve()));
if (lost !== undefined) {
  io.writeError(`standard output could not be written (${lost.message}), and is not whole; make room, or write it elsewhere\n`);
  process.exit(exitCode === exitCodes.ok ? exitCodes.failed : exitCode);
}
process.exitCode = exitCode;
// What is left open (a connection that closes, a child that lives on) must not hold the command.
if (exitCode !== exitCodes.ok || aborter.signal.aborted) process.exit(exitCode);
