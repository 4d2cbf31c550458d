import { expect, test } from 'vitest';
import { manualEnvironment } from '../testing/index.ts';
import type { CliIo } from './io.ts';
import { showProgress, withProgress } from './progress.ts';

function standardError(errorIsTerminal: boolean, columns = 80): { readonly io: CliIo; readonly texts: string[] } {
  const texts: string[] = [];
  const io = { errorIsTerminal, columns: () => columns, drawError: (text: string) => void texts.push(text) };
  return { io: io as unknown as CliIo, texts };
}

test('what is quick stays silent, and leaves no timer', async () => {
  const environment = manualEnvironment();
  const { io, texts } = standardError(true);
  using progress = showProgress({ io, environment }, 'opening x');
  await environment.advance(999);
  progress[Symbol.dispose]();
  await environment.advance(5_000);
  expect(texts).toEqual([]);
  expect(environment.open.counts()).toEqual({});
});

test('one line from the first second on, drawn in place, as wide as the terminal, cleared at the end', async () => {
  const environment = manualEnvironment();
  const { io, texts } = standardError(true, 30);
  const progress = showProgress({ io, environment }, 'opening a\u001b[2J');
  await environment.advance(1_000);
  expect(texts).toEqual(['\r\u001b[Kopening a\\x1b[2J (1s)']);
  progress.at('10 of 4,000,000 records');
  await environment.advance(1_200);
  expect(texts.at(-1)).toBe('\r\u001b[Kopening a\\x1b[2J: 10 of 4,00…');
  progress[Symbol.dispose]();
  expect(texts.at(-1)).toBe('\r\u001b[K');
  expect(environment.open.counts()).toEqual({});
});

test('not on a terminal: nothing, however long it takes; a failure clears the line too', async () => {
  const environment = manualEnvironment();
  const quiet = standardError(false);
  using _silent = showProgress({ io: quiet.io, environment }, 'opening x');
  const shown = standardError(true);
  const failing = withProgress({ io: shown.io, environment }, 'opening x', async () => {
    await environment.sleep(3_000);
    throw new Error('no');
  });
  const failed = expect(failing).rejects.toThrow('no');
  await environment.advance(4_000);
  await failed;
  expect(quiet.texts).toEqual([]);
  expect(shown.texts.at(-1)).toBe('\r\u001b[K');
});
