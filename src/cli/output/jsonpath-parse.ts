import { UsageError } from '../exit-codes.ts';

export type Step =
  | { readonly kind: 'root' }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'key'; readonly name: string; readonly path: readonly string[] }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly every: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'union'; readonly steps: readonly Exclude<Step, { kind: 'root' }>[] }
  | { readonly kind: 'filter'; readonly filter: Filter }
  | { readonly kind: 'deep'; readonly step: Exclude<Step, { kind: 'root' }> };

export type Operand = { readonly kind: 'literal'; readonly value: unknown } | { readonly kind: 'path'; readonly steps: readonly Step[] };

export interface Filter {
  readonly left: Operand;
  readonly operator?: '==' | '!=' | '<' | '<=' | '>' | '>=';
  readonly right?: Operand;
}

export type Action =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly steps: readonly Step[] }
  | { readonly kind: 'range'; readonly steps: readonly Step[]; readonly body: readonly Action[] };

/** Reads a template. UsageError says where it stops making sense. */
export function parseTemplate(template: string): readonly Action[] {
  const parser = new Parser(template);
  const actions = parser.actions(false);
  return actions;
}

/** Deepest nesting of ranges, brackets and filters: the reader recurses. */
const maximumNesting = 64;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  actions(inRange: boolean): readonly Action[] {
    const actions: Action[] = [];
    for (;;) {
      const open = this.#text.indexOf('{', this.#at);
      const text = this.#text.slice(this.#at, open < 0 ? undefined : open);
      if (text !== '') actions.push({ kind: 'text', text });
      if (open < 0) {
        if (inRange) this.#fail('{range} without {end}');
        this.#at = this.#text.length;
        return actions;
      }
      this.#at = open + 1;
      this.#space();
      if (/^end *\}/.test(this.#text.slice(this.#at, this.#at + 100)) && this.#take('end')) {
        this.#close();
        if (!inRange) this.#fail('{end} without {range}');
        return actions;
      }
      if (this.#take('range ')) {
        this.#space();
        const steps = this.#path();
        this.#close();
        actions.push({ kind: 'range', steps, body: this.#nested(() => this.actions(true)) });
        continue;
      }
      const quote = this.#text[this.#at];
      if (quote === '"' || quote === "'") actions.push({ kind: 'text', text: this.#quoted() });
      else actions.push({ kind: 'path', steps: this.#path() });
      this.#close();
    }
  }

  #fail(problem: string): never {
    const text = this.#text.length > 200 ? `${this.#text.slice(0, 200)}…` : this.#text;
    throw new UsageError(`JSONPath ${JSON.stringify(text)}: ${problem} at character ${this.#at + 1}`);
  }

  #space(): void {
    while (this.#text[this.#at] === ' ') this.#at++;
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #close(): void {
    this.#space();
    if (!this.#take('}')) this.#fail('expected }');
  }

  #path(): readonly Step[] {
    const steps: Step[] = [];
    for (;;) {
      if (this.#take('$')) steps.push({ kind: 'root' });
      else if (this.#take('@')) continue;
      else if (this.#take('..')) steps.push({ kind: 'deep', step: this.#take('[') ? this.#bracket() : this.#field() });
      else if (this.#take('.')) {
        if (this.#text[this.#at] === '[' || this.#text[this.#at] === '}' || this.#at >= this.#text.length) continue;
        steps.push(this.#field());
      } else if (this.#take('[')) steps.push(this.#bracket());
      else if (steps.length === 0 && /[A-Za-z_]/.test(this.#text[this.#at] ?? '')) steps.push(this.#field());
      else return steps;
    }
  }

  #field(): Exclude<Step, { kind: 'root' }> {
    if (this.#take('*')) return { kind: 'all' };
    let name = '';
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at] as string;
      if (character === '\\') {
        name += this.#text[++this.#at] ?? '';
        continue;
      }
      if (/[.[\]{}()\s=!<>,]/.test(character)) break;
      name += character;
    }
    if (name === '') this.#fail('expected a field name');
    return { kind: 'field', name };
  }

  #nested<Value>(read: () => Value): Value {
    if (++this.#depth > maximumNesting) this.#fail(`nested deeper than ${maximumNesting} levels`);
    const value = read();
    this.#depth--;
    return value;
  }

  #bracket(): Exclude<Step, { kind: 'root' }> {
    return this.#nested(() => this.#selectors());
  }

  #selectors(): Exclude<Step, { kind: 'root' }> {
    const steps: Exclude<Step, { kind: 'root' }>[] = [];
    do {
      this.#space();
      steps.push(this.#selector());
      this.#space();
    } while (this.#take(','));
    if (!this.#take(']')) this.#fail('expected ]');
    return steps.length === 1 ? (steps[0] as Exclude<Step, { kind: 'root' }>) : { kind: 'union', steps };
  }

  #selector(): Exclude<Step, { kind: 'root' }> {
    if (this.#take('*')) return { kind: 'all' };
    const quote = this.#text[this.#at];
    if (quote === '"' || quote === "'") return this.#key();
    if (this.#take('?(')) return { kind: 'filter', filter: this.#filter() };
    const slice = /^(-?[0-9]+)?:(-?[0-9]+)?(?::([0-9]+))?/.exec(this.#text.slice(this.#at));
    if (slice !== null) {
      this.#at += slice[0].length;
      const number = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
      return { kind: 'slice', from: number(slice[1]), to: number(slice[2]), every: Math.max(1, number(slice[3]) ?? 1) };
    }
    const index = /^-?[0-9]+/.exec(this.#text.slice(this.#at));
    if (index === null) this.#fail('expected an index, *, a quoted name or a filter');
    this.#at += index[0].length;
    return { kind: 'index', index: Number(index[0]) };
  }

  /** A quoted key. One with dots is that key where there is one, else a path: `['metadata.name']` is both ways of writing. */
  #key(): Exclude<Step, { kind: 'root' }> {
    const from = this.#at + 1;
    const name = this.#quoted();
    // A dot behind a backslash is part of the name.
    const isPath = /(?<!\\)\./.test(this.#text.slice(from, this.#at - 1)) && !/^\.|\.$|\.\./.test(name);
    return isPath ? { kind: 'key', name, path: name.split('.') } : { kind: 'field', name };
  }

  #filter(): Filter {
    this.#space();
    const left = this.#operand();
    this.#space();
    const operator = (['==', '!=', '<=', '>=', '<', '>'] as const).find((candidate) => this.#take(candidate));
    let right: Operand | undefined;
    if (operator !== undefined) {
      this.#space();
      right = this.#operand();
      this.#space();
    }
    if (!this.#take(')')) this.#fail('expected )');
    return { left, ...(operator && { operator }), ...(right && { right }) };
  }

  #operand(): Operand {
    const quote = this.#text[this.#at];
    if (quote === '"' || quote === "'") return { kind: 'literal', value: this.#quoted() };
    const word = /^(?:true|false|null|-?[0-9]+(?:\.[0-9]+)?)(?![\w.])/.exec(this.#text.slice(this.#at));
    if (word !== null) {
      this.#at += word[0].length;
      return { kind: 'literal', value: literal(word[0]) };
    }
    if (quote !== '@' && quote !== '$' && quote !== '.') this.#fail('expected a path or a value');
    return { kind: 'path', steps: this.#path() };
  }

  #quoted(): string {
    const quote = this.#text[this.#at++];
    let text = '';
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at] as string;
      if (character === quote) {
        this.#at++;
        return text;
      }
      if (character === '\\') {
        const next = this.#text[++this.#at] ?? '';
        text += next === 'n' ? '\n' : next === 't' ? '\t' : next;
      } else text += character;
    }
    return this.#fail('a quote is not closed');
  }
}

/** A value as it is written; an integer that a number cannot hold is none. */
function literal(text: string): unknown {
  const value = JSON.parse(text) as unknown;
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(text) : value;
}
