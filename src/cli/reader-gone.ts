import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';

/**
 * Tells when the reader of the pipe on standard output has gone, also while nothing is written: Node looks at a pipe only when
 * it writes. A `tail` that follows nothing does: GNU's ends by SIGPIPE at once then. Any other end of it says nothing, and
 * where there is none, or standard output is no pipe, the next write finds out as ever. Dispose it to look no more.
 */
export function watchReader(onGone: () => void): Disposable {
  let child: ReturnType<typeof spawn> | undefined;
  const stop = (): void => {
    process.off('exit', stop);
    child?.removeAllListeners('exit');
    child?.kill('SIGKILL');
    child = undefined;
  };
  if (process.platform === 'linux' && fstatSync(1).isFIFO()) {
    // It holds the pipe as we do, so it ends with us, however we end.
    child = spawn('tail', ['-f', '-n', '0', '-s', '0.2', `--pid=${process.pid}`, '/dev/null'], { stdio: ['ignore', 1, 'ignore'] });
    child.unref();
    child.on('error', () => {});
    child.on('exit', (_code, signal) => {
      if (signal === 'SIGPIPE') onGone();
    });
    process.on('exit', stop);
  }
  return { [Symbol.dispose]: stop };
}
