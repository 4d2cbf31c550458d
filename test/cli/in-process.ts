import type { CliIo } from '../../src/cli/index.ts';
import { runCli } from '../../src/cli/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';

export interface InProcessResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What was left open: empty when all is well. */
  readonly open: Readonly<Record<string, number>>;
}

export interface InProcessOptions {
  readonly input?: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Columns of a terminal; absent: none. */
  readonly columns?: number;
  readonly color?: boolean;
  readonly signal?: AbortSignal;
  /** Told of each piece of standard output. */
  readonly onOutput?: (text: string) => void;
  readonly openEditor?: CliIo['openEditor'];
}

/** The outside world of a run of which nobody sees anything. */
export function quietIo(folder: string): CliIo {
  return {
    write() {},
    draw() {},
    writeError() {},
    drawError() {},
    isTerminal: false,
    errorIsTerminal: false,
    columns: () => 0,
    rows: () => 0,
    color: false,
    caller: () => 'a test',
    variables: {},
    directory: folder,
    storeDirectory: folder,
    readStandardInput: async () => '',
    openEditor: async () => 0,
    signal: new AbortController().signal,
  };
}

/** Runs a command line in this process, which is many times faster than a process of its own. */
export async function runInProcess(folder: string, args: readonly string[], options: InProcessOptions = {}): Promise<InProcessResult> {
  let [stdout, stderr] = ['', ''];
  const environment = nodeEnvironment();
  const write = (text: string): void => {
    stdout += text;
    options.onOutput?.(text);
  };
  const io: CliIo = {
    ...quietIo(folder),
    write,
    draw: write,
    writeError: (text) => void (stderr += text),
    drawError: (text) => void (stderr += text),
    isTerminal: options.columns !== undefined,
    errorIsTerminal: options.columns !== undefined,
    columns: () => options.columns ?? 0,
    rows: () => (options.columns === undefined ? 0 : 40),
    color: options.color ?? false,
    variables: options.variables ?? {},
    readStandardInput: async () => options.input ?? '',
    ...(options.openEditor && { openEditor: options.openEditor }),
    ...(options.signal && { signal: options.signal }),
  };
  const code = await runCli(args, io, environment);
  return { code, stdout, stderr, open: environment.open.counts() };
}
