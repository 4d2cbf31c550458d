export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** The small logging port; adapters (pino and the like) live at the edge. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** A logger that adds `fields` to every line. */
  with(fields: Readonly<Record<string, unknown>>): Logger;
}
