import { describe, expect, test } from 'vitest';
import { lineLogger } from './loggers.ts';

function collect(level?: 'debug' | 'warn') {
  const lines: string[] = [];
  const log = lineLogger({ write: (line) => lines.push(line), timestamp: () => 'T', ...(level && { level }) });
  return { log, lines };
}

describe('a line for people', () => {
  test('has time, level, message and fields', () => {
    const { log, lines } = collect();
    log.with({ controller: 'a/b' }).log('info', 'reconciled', { took: 5, big: 10n, why: 'two words', error: new Error('no') });
    expect(lines).toEqual(['T info  reconciled controller=a/b took=5 big=10 why="two words" error="no"']);
  });

  test('is left out below the level', () => {
    const { log, lines } = collect('warn');
    log.log('info', 'a');
    log.log('warn', 'b');
    expect(lines).toEqual(['T warn  b']);
    const all = collect('debug');
    all.log.log('debug', 'c');
    expect(all.lines).toHaveLength(1);
  });

  test('stays one line, and moves no cursor', () => {
    const { log, lines } = collect();
    log.log('error', 'a\nb\u001b[2J\u009b', { text: '\u001b]0;x\u0007' });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left.
    expect(lines[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    expect(lines[0]).toContain('a\\x0ab\\x1b[2J\\x9b');
  });
});
