import type { ServiceOutput } from '../../host/index.ts';
import { stackOutputs } from '../../host/index.ts';
import { visibleText } from '../../resource/index.ts';
import { visibleLines } from '../advice.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';

/** How often a followed file is looked at, milliseconds. */
const pollMs = 250;
const chunkBytes = 64 * 1024;

/** `logs STACK [SERVICE] [-f]` */
export async function logsCommand(
  context: CommandContext,
  stack: string,
  service: string | undefined,
  options: { readonly follow?: boolean; readonly tail?: string },
): Promise<number> {
  const tail = options.tail === undefined ? undefined : Number(options.tail);
  if (tail !== undefined && (!Number.isSafeInteger(tail) || tail < 0))
    throw new UsageError(`--tail: expected a number of lines, found ${options.tail}`);
  return withSession(context, async (session) => {
    const { namespace } = context.options;
    const outputs = await stackOutputs(session.state, { id: stack, ...(namespace !== undefined && { namespace }) }, service);
    const readers = outputs.map((output) => new OutputReader(context, output, outputs.length > 1));
    for (const reader of readers) await reader.begin(tail);
    if (options.follow !== true) for (const reader of readers) await reader.end();
    while (options.follow === true && !context.io.signal.aborted) {
      for (const reader of readers) await reader.more();
      await context.environment.sleep(pollMs, context.io.signal).catch(() => {});
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

/** Prints one file, from a line on, and what comes later. */
class OutputReader {
  readonly #context: CommandContext;
  readonly #output: ServiceOutput;
  readonly #prefix: string;
  readonly #decoder = new TextDecoder();
  #offset = 0;
  #rest = '';

  constructor(context: CommandContext, output: ServiceOutput, prefixed: boolean) {
    this.#context = context;
    this.#output = output;
    this.#prefix = prefixed ? `${visibleText(output.service)} | ` : '';
  }

  async begin(tail: number | undefined): Promise<void> {
    if (tail !== undefined) this.#offset = await this.#tailOffset(tail);
    await this.more();
  }

  async more(): Promise<void> {
    const { files } = this.#context.environment;
    const size = (await files.stat(this.#output.file))?.size ?? 0;
    // The file was rotated: it begins anew.
    if (size < this.#offset) this.#offset = 0;
    while (this.#offset < size && !this.#context.io.signal.aborted) {
      const bytes = await files.readRange(this.#output.file, this.#offset, Math.min(chunkBytes, size - this.#offset));
      if (bytes.length === 0) return;
      this.#offset += bytes.length;
      const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#print(line);
    }
  }

  /** A last line without an end is a line too. */
  async end(): Promise<void> {
    if (this.#rest !== '') this.#print(this.#rest);
  }

  #print(line: string): void {
    const { io } = this.#context;
    io.draw(`${this.#prefix}${io.isTerminal ? logLine(line, io.color) : line}\n`);
  }

  async #tailOffset(lines: number): Promise<number> {
    const { files } = this.#context.environment;
    const size = (await files.stat(this.#output.file))?.size ?? 0;
    if (lines === 0) return size;
    let found = 0;
    for (let end = size; end > 0; end -= chunkBytes) {
      const start = Math.max(0, end - chunkBytes);
      const bytes = await files.readRange(this.#output.file, start, end - start);
      for (let index = bytes.length - 1; index >= 0; index--) {
        if (bytes[index] === 0x0a && start + index !== size - 1 && ++found === lines) return start + index + 1;
      }
    }
    return 0;
  }
}
