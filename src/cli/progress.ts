import { visibleText } from '../resource/index.ts';
import type { CommandContext } from './context.ts';
import { durationText } from './output/age.ts';
import { cutText } from './output/text-width.ts';

/** How long something takes before it is worth a word, and how often the word is renewed, milliseconds. */
const patienceMs = 1_000;
const tickMs = 200;

/** Tells on a terminal what a long work is at. Dispose it when the work is done, whether it went well or not. */
export interface Progress extends Disposable {
  /** What is done by now, such as `12,000 of 40,000 records`; empty: nothing is known. */
  at(text: string): void;
}

/**
 * Shows `what`, how far it is and the time that it took so far: one line of standard error, drawn in place and cleared at the
 * end. It begins after a second, so that what is quick stays silent, and only where standard error is a terminal.
 * A work that keeps the event loop busy shows nothing: it has to breathe (`environment.breathe()`).
 */
export function showProgress({ io, environment }: Pick<CommandContext, 'io' | 'environment'>, what: string): Progress {
  if (!io.errorIsTerminal) return { at() {}, [Symbol.dispose]() {} };
  const started = environment.elapsed();
  let done = '';
  let drawn = false;
  const draw = (): void => {
    const text = visibleText(`${what}${done === '' ? '' : `: ${done}`} (${durationText(environment.elapsed() - started)})`);
    const columns = io.columns();
    io.drawError(`\r\u001b[K${columns > 0 ? cutText(text, columns - 1) : text}`);
    drawn = true;
    timer = environment.after(tickMs, draw);
  };
  let timer = environment.after(patienceMs, draw);
  return {
    at(text) {
      done = text;
    },
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      if (drawn) io.drawError('\r\u001b[K');
      drawn = false;
    },
  };
}

/** Runs a work under `showProgress`. */
export async function withProgress<Value>(
  context: Pick<CommandContext, 'io' | 'environment'>,
  what: string,
  work: (progress: Progress) => Promise<Value>,
): Promise<Value> {
  using progress = showProgress(context, what);
  return await work(progress);
}
