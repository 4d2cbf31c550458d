import { stackOutputs } from '../../host/index.ts';
import { visibleText } from '../../resource/index.ts';
import { visibleLines } from '../advice.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { OutputReader } from '../output-reader.ts';

/** How often a followed file is looked at, milliseconds. */
const pollMs = 250;

/** `logs STACK [SERVICE] [-f]` */
export async function logsCommand(
  context: CommandContext,
  stack: string,
  service: string | undefined,
  options: { readonly follow?: boolean; readonly tail?: string },
): Promise<number> {
  // As with kubectl, -1 is all.
  const tail = options.tail === undefined || options.tail === '-1' ? undefined : Number(options.tail);
  if (tail !== undefined && (!Number.isSafeInteger(tail) || tail < 0))
    throw new UsageError(`--tail: expected a number of lines, found ${options.tail}`);
  return withSession(context, async (session) => {
    const { namespace } = context.options;
    const outputs = await stackOutputs(session.state, { id: stack, ...(namespace !== undefined && { namespace }) }, service);
    const { io, environment } = context;
    const readers = outputs.map((output) => {
      const prefix = outputs.length > 1 ? `${visibleText(output.service)} | ` : '';
      const print = (line: string): void => io.draw(`${prefix}${io.isTerminal ? logLine(line, io.color) : line}\n`);
      return new OutputReader({ files: environment.files, output, signal: io.signal, print });
    });
    for (const reader of readers) await reader.begin(tail);
    if (options.follow !== true) for (const reader of readers) reader.end();
    while (options.follow === true && !io.signal.aborted) {
      for (const reader of readers) await reader.more();
      await environment.sleep(pollMs, io.signal).catch(() => {});
    }
    return exitCodes.ok;
  });
}

/** A line of a service for a terminal: it may have colours, and nothing else that a terminal obeys. A pipe gets it as it was written. */
export function logLine(line: string, color: boolean): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is looked for.
  const parts = line.replace(/\r$/, '').split(/(\u001b\[[0-9;:]*m)/);
  if (parts.length === 1) return visibleLines(line.replace(/\r$/, ''));
  return `${parts.map((part, index) => (index % 2 === 0 ? visibleLines(part) : color ? part : '')).join('')}${color ? '\u001b[0m' : ''}`;
}
