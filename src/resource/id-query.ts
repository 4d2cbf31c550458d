import { createRequire } from 'node:module';
import { invalid } from './values.ts';

type Matcher = (id: string) => boolean;

const literal = /^[A-Za-z0-9 _/:@,;=#%&~"'<>!-]*$/;

/**
 * Compiles an RE2 expression (linear time whatever the expression) that must match somewhere in an id. Plain text, with or
 * without anchors, needs no engine; the engine is loaded at the first expression that does. Throws Invalid.
 */
export function compileIdQuery(expression: string): Matcher {
  if (typeof expression !== 'string') throw invalid([{ path: 'idQuery', message: `expected text, found ${typeof expression}` }]);
  const start = expression.startsWith('^');
  const end = expression.endsWith('$') && !expression.endsWith('\\$');
  const middle = expression.slice(start ? 1 : 0, end ? -1 : undefined).replace(/\\([.\-/])/g, '\u0000$1');
  // After an escape was marked, what is left must be plain or a marked character.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is the mark; no id holds one.
  if (literal.test(middle.replace(/\u0000[.\-/]/g, ''))) return literalMatcher(middle.replaceAll('\u0000', ''), start, end);
  try {
    const compiled = engine().RE2JS.compile(expression);
    return (id) => compiled.test(id);
  } catch (error) {
    throw invalid(
      [{ path: 'idQuery', message: `not an RE2 expression: ${error instanceof Error ? error.message : String(error)}` }],
      undefined,
      error,
    );
  }
}

/** Ids that begin with a text, or are just that text. */
export interface IdRange {
  readonly prefix: string;
  readonly exact: boolean;
}

/** Where all ids are that an expression can match; `undefined`: anywhere. */
export function idRange(expression: string): IdRange | undefined {
  // One side of an alternative need not begin as the other does.
  if (!expression.startsWith('^') || expression.includes('|')) return undefined;
  const [text = ''] = /^(?:[A-Za-z0-9 _/:@,;=#%&~"'<>!-]|\\[.\-/])*/.exec(expression.slice(1)) ?? [];
  const rest = expression.slice(1 + text.length);
  // What is repeated or left out is the last character.
  const sure = /^[*+?{]/.test(rest) ? text.replace(/\\?.$/, '') : text;
  const prefix = sure.replaceAll('\\', '');
  return prefix === '' && rest !== '$' ? undefined : { prefix, exact: rest === '$' };
}

function literalMatcher(text: string, start: boolean, end: boolean): Matcher {
  if (start && end) return (id) => id === text;
  if (start) return (id) => id.startsWith(text);
  if (end) return (id) => id.endsWith(text);
  return (id) => id.includes(text);
}

let loaded: typeof import('re2js') | undefined;

// Loading is idempotent and has no effect besides memory, so this cache is not state that anyone could observe.
function engine(): typeof import('re2js') {
  loaded ??= createRequire(import.meta.url)('re2js') as typeof import('re2js');
  return loaded;
}
