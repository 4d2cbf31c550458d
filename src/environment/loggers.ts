import type { Logger, LogLevel } from './logger.ts';

/** A logger that hands every line to `write`. */
export function makeLogger(
  write: (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void,
  fields: Readonly<Record<string, unknown>> = {},
): Logger {
  return {
    log: (level, message, more) => write(level, message, more === undefined ? fields : { ...fields, ...more }),
    with: (more) => makeLogger(write, { ...fields, ...more }),
  };
}

/** Drops everything. */
export const silentLogger: Logger = { log: () => {}, with: () => silentLogger };

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** One line of text per message, for people: time, level, message, fields. Control characters are escaped. */
export function lineLogger(options: {
  readonly write: (line: string) => void;
  readonly timestamp: () => string;
  readonly level?: LogLevel;
}): Logger {
  const lowest = levels.indexOf(options.level ?? 'info');
  return makeLogger((level, message, fields) => {
    if (levels.indexOf(level) < lowest) return;
    const rest = Object.entries(fields).map(([key, value]) => ` ${key}=${fieldText(value)}`);
    options.write(`${options.timestamp()} ${level.padEnd(5)} ${escapeControls(message)}${rest.join('')}`);
  });
}

function fieldText(value: unknown): string {
  if (value instanceof Error) return escapeControls(JSON.stringify(value.message));
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string' && /^[\w./:@-]+$/.test(value)) return value;
  try {
    return escapeControls(JSON.stringify(value) ?? 'undefined');
  } catch {
    // In a circle, or with a bigint inside: the line is worth more than the field.
    return '(cannot be shown)';
  }
}

/** Control characters, and what turns the reading order or is not seen. */
function escapeControls(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped.
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => {
      const code = character.charCodeAt(0).toString(16);
      return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
    },
  );
}
