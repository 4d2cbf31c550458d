import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CliIo } from '../../src/cli/index.ts';
import { runCli } from '../../src/cli/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { program, smallStack } from './harness.ts';

/** As much of a terminal as the live table needs. */
class Screen {
  readonly lines: string[] = [''];
  /** Escapes that were used, without their numbers. */
  readonly escapes = new Set<string>();
  #row = 0;
  /** Writing goes on at the start of a line after every newline; nothing here moves sideways. */
  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is read.
    for (const part of text.split(/(\u001b\[[0-9;]*[A-Za-z]|\n)/)) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
      const sequence = /^\u001b\[([0-9;]*)([A-Za-z])$/.exec(part);
      if (part === '\n') {
        this.#row++;
        this.lines[this.#row] ??= '';
      } else if (sequence === null) this.lines[this.#row] += part;
      else {
        this.escapes.add(sequence[2] as string);
        if (sequence[2] === 'A') this.#row -= Number(sequence[1]);
        if (sequence[2] === 'J') this.lines.splice(this.#row, Number.POSITIVE_INFINITY, '');
      }
    }
  }
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ss-tty-'));
  await writeFile(join(folder, 'small.yaml'), smallStack);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function terminal(
  columns: number,
  rows: number,
  color: boolean,
): { readonly io: CliIo; readonly screen: Screen; readonly errors: string[] } {
  const [screen, errors] = [new Screen(), [] as string[]];
  const io: CliIo = {
    write: (text) => screen.write(text),
    draw: (text) => screen.write(text),
    writeError: (text) => void errors.push(text),
    drawError: (text) => void errors.push(text),
    isTerminal: true,
    errorIsTerminal: true,
    columns: () => columns,
    rows: () => rows,
    color,
    caller: () => 'a test',
    variables: {},
    directory: folder,
    storeDirectory: folder,
    readStandardInput: async () => '',
    openEditor: async () => 0,
    signal: new AbortController().signal,
  };
  return { io, screen, errors };
}

describe.each([
  [80, 24, false],
  [200, 50, true],
  [40, 12, true],
])('on a terminal of %d columns and %d rows (colours: %s)', (columns, rows, color) => {
  test('up shows one table that is drawn in place, and leaves nothing open', async () => {
    const { io, screen, errors } = terminal(columns, rows, color);
    const environment = nodeEnvironment();
    expect(await runCli(['up', 'small.yaml', '--store', 'memory:', '--until', 'ready'], io, environment)).toBe(0);
    expect(errors).toEqual([]);
    const text = screen.lines.join('\n');
    expect(screen.lines.filter((line) => line.startsWith('● small'))).toHaveLength(1);
    expect(text).not.toContain('○');
    expect(text.match(/^ {2}KIND/gm)).toHaveLength(1);
    expect(text).toMatch(/ready: small/);
    for (const line of screen.lines.filter((each) => !each.includes('http://'))) expect(line.length).toBeLessThanOrEqual(columns);
    expect(screen.escapes.has('m')).toBe(color);
    expect(environment.open.counts()).toEqual({});
  });
});

/** The built program on a real terminal, by the program `script`; both streams come as one. */
async function onTerminal(line: string, variables: Record<string, string> = {}): Promise<string> {
  const { NO_COLOR: _color, INIT_CWD: _cwd, ...inherited } = process.env;
  const { stdout } = await promisify(execFile)(
    'script',
    ['-qec', `stty cols 80 rows 24; ${process.execPath} ${program} ${line}`, '/dev/null'],
    {
      cwd: folder,
      env: { ...inherited, TERM: 'xterm', ...variables },
    },
  );
  return stdout;
}

describe.skipIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status !== 0)('a real terminal', () => {
  const up = 'up small.yaml --store memory: --until ready';
  test.each([
    ['as it is', up, {}, true, true],
    ['NO_COLOR', up, { NO_COLOR: '1' }, true, false],
    ['an empty NO_COLOR says nothing', up, { NO_COLOR: '' }, true, true],
    ['--no-color', `${up} --no-color`, {}, true, false],
    ['a dumb terminal', up, { TERM: 'dumb' }, false, false],
    ['a pipe', `${up} | cat`, {}, false, false],
  ])('%s', async (_name, line, variables, draws, colors) => {
    const text = await onTerminal(line, variables);
    expect(text).toMatch(/ready: small/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is looked for.
    expect({ draws: /\u001b\[\d*[AJ]/.test(text), colors: /\u001b\[\d+m/.test(text) }).toEqual({ draws, colors });
  });
});
