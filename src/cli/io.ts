/** The outside world of one run of the command line; tests give their own. */
export interface CliIo {
  /** Standard output. On a terminal, what it would obey is shown. */
  write(text: string): void;
  /** Standard output as it is, for what is drawn in place, and for colours. */
  draw(text: string): void;
  /** Standard error: lines of text. The program shows in them what a terminal would obey. */
  writeError(text: string): void;
  /** Standard error as it is, for what is drawn in place. */
  drawError(text: string): void;
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean;
  /** Whether standard error is a terminal: only there is progress drawn. */
  readonly errorIsTerminal: boolean;
  /** Columns of the terminal; 0: neither stream is one, nothing is cut. */
  columns(): number;
  /** Rows of the terminal; 0: not a terminal. */
  rows(): number;
  readonly color: boolean;
  /** Who runs the command, for records: the user, the machine and the process. */
  caller(): string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The folder in which the person typed the command: files are relative to it. */
  readonly directory: string;
  /** The folder of the store: `.steadystate` is in it. */
  readonly storeDirectory: string;
  /** Invalid when it is not UTF-8, or too long. */
  readStandardInput(): Promise<string>;
  /** Standard input bit by bit, for what is larger than memory. @default all of `readStandardInput` at once */
  standardInput?(): AsyncIterable<Uint8Array>;
  /** Resolves when standard output takes more. @default at once */
  drained?(): Promise<void>;
  /** Until it is disposed, `signal` aborts as soon as the reader of standard output has gone. @default at the next write */
  watchReader?(): Disposable;
  /** Runs an editor on a file, on the person's terminal; its exit code. */
  openEditor(editor: string, file: string): Promise<number>;
  /**
   * Aborts at the first Ctrl-C or SIGTERM, with the exit code of what it cuts short as its reason, and when the reader of
   * standard output has gone.
   */
  readonly signal: AbortSignal;
}
