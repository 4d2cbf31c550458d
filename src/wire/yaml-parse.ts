import type { Alias, CST, Document, LineCounter, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { InvalidIssue } from '../resource/index.ts';
import { appendPath, Bytes, isWellFormed, maximumDepth, SteadystateError } from '../resource/index.ts';
import { yamlLibrary } from './yaml-library.ts';

/** Most nodes of one text, aliases counted as what they stand for: an alias bomb ends here. */
const maximumNodes = 200_000;
/** Most words, signs and line ends of one text: what a text with as many nodes needs. */
const maximumLexemes = 8 * maximumNodes;
const binaryTag = 'tag:yaml.org,2002:binary';
/** Longest text that is read, bytes. */
export const maximumYamlBytes = 16 * 1024 * 1024;

/** Where something stands, from 1. */
export interface YamlPosition {
  readonly line: number;
  readonly column: number;
}

/** One document of a text, as plain data that a spec may hold. */
export interface YamlDocument {
  readonly value: unknown;
  /** Where the value at a path stands: the nearest that is there. */
  position(path: readonly (string | number)[]): YamlPosition;
}

export interface YamlOptions {
  /** What errors call the text. */
  readonly file?: string;
  /** The line of the file at which the text begins. @default 1 */
  readonly line?: number;
}

/** An error about a place in a text. */
export function yamlError(file: string | undefined, { line, column }: YamlPosition, message: string, path = ''): SteadystateError {
  const where = `${file === undefined ? 'line ' : `${file}:`}${line}:${column}`;
  const issue: InvalidIssue = { path: path === '' ? where : path, message };
  return new SteadystateError('Invalid', `${where}: ${path === '' ? '' : `${path}: `}${message}`, { issues: [issue] });
}

/**
 * Reads YAML 1.2 (and so JSON) as plain data: integers beyond 2^53 as bigint, `!!binary` as Bytes. What would be rounded,
 * merged, dropped or guessed is an error with its line and column: duplicate keys, merge keys, unknown tags, 1e400, 0644,
 * lone surrogates, lone carriage returns, too deep or too many nodes.
 */
export function parseYaml(source: string, options: YamlOptions = {}): readonly YamlDocument[] {
  const { file, line = 1 } = options;
  if (source.length > maximumYamlBytes) throw yamlError(file, { line, column: 1 }, `longer than ${maximumYamlBytes} bytes`);
  const library = yamlLibrary();
  const lines = new Lines(line);
  const text = withoutByteOrderMarks(source);
  const tokens = readTokens(text, lines, file);
  const stray = text.search(/\r(?!\n)/);
  if (stray >= 0)
    throw yamlError(
      file,
      lines.at(stray),
      'a carriage return that ends no line; save the text with plain line ends, or write \\r in double quotes',
    );
  const composer = new library.Composer({
    intAsBigInt: true,
    merge: false,
    uniqueKeys: false,
    version: '1.2',
    schema: 'core',
    prettyErrors: false,
    strict: true,
    resolveKnownTags: false,
    customTags: [{ tag: binaryTag, resolve: (source: string) => source }],
    logLevel: 'silent',
  });
  const documents = [...composer.compose(tokens)] as Document[];
  return documents.map((document) => {
    for (const error of [...document.errors, ...document.warnings]) throw yamlError(file, lines.at(error.pos[0]), error.message);
    const { version } = document.directives?.yaml ?? {};
    if (version === '1.1')
      throw yamlError(file, lines.at(document.range?.[0] ?? 0), 'YAML 1.1 is not read, where yes is true and 010 is 8; write YAML 1.2');
    const reader = new Reader(document, lines, file);
    return { value: reader.read(), position: (path) => reader.position(path) };
  });
}

/** Reads a text that holds one document. */
export function parseYamlValue(text: string, options: YamlOptions = {}): unknown {
  const documents = parseYaml(text, options);
  if (documents.length > 1) throw yamlError(options.file, { line: 1, column: 1 }, `expected one document, found ${documents.length}`);
  return documents[0]?.value ?? null;
}

/**
 * The tokens of a text, nested no deeper than a spec may be. The library recurses into what they hold, and a stack that overflows
 * there can end the whole process, so that must be known before.
 */
function readTokens(text: string, lines: Lines, file: string | undefined): readonly CST.Token[] {
  const library = yamlLibrary();
  const parser = new library.Parser((offset) => lines.add(offset));
  const tokens: CST.Token[] = [];
  let count = 0;
  lines.add(0);
  for (const lexeme of new library.Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    // The stack holds one entry for each level, and a few for the document and what is being read.
    if (parser.stack.length > maximumDepth + 4) throw yamlError(file, lines.at(parser.offset), `nested deeper than ${maximumDepth} levels`);
    if (++count > maximumLexemes) throw yamlError(file, lines.at(parser.offset), `more than ${maximumLexemes} words and signs`);
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

/** Files that were put together keep the marks that each began with; a mark is no part of the document behind it. */
function withoutByteOrderMarks(text: string): string {
  if (text.lastIndexOf('\ufeff') <= 0) return text;
  return text
    .replace(/(^|\n)\ufeff(?=(?:---|\.\.\.)(?:\s|$))/g, '$1')
    .replace(/((?:^|\n)(?:---|\.\.\.)[ \t]*(?:#.*)?(?:\r?\n)+)\ufeff/g, '$1');
}

/** Where the lines of a text begin. */
class Lines {
  readonly #counter: LineCounter;
  readonly #first: number;

  constructor(first: number) {
    this.#counter = new (yamlLibrary().LineCounter)();
    this.#first = first;
  }

  add(offset: number): void {
    this.#counter.addNewLine(offset);
  }

  at(offset: number): YamlPosition {
    const { line, col } = this.#counter.linePos(offset);
    return { line: Math.max(line, 1) + this.#first - 1, column: Math.max(col, 1) };
  }
}

class Reader {
  readonly #document: Document;
  readonly #lines: Lines;
  readonly #file: string | undefined;
  #nodes = 0;
  #targets: ReadonlyMap<Alias, Node | undefined> | undefined;

  constructor(document: Document, lines: Lines, file: string | undefined) {
    this.#document = document;
    this.#lines = lines;
    this.#file = file;
  }

  read(): unknown {
    return this.#read(this.#document.contents as Node | null, 0, '');
  }

  position(path: readonly (string | number)[]): YamlPosition {
    let node = this.#document.contents as Node | null;
    let found = node;
    for (const key of path) {
      let next: Node | null | undefined;
      if (yamlLibrary().isMap(node)) {
        const pair = node.items.find((item) => keyText(item) === String(key));
        next = (pair?.value ?? pair?.key) as Node | undefined;
        if (pair !== undefined && next === pair.value && yamlLibrary().isScalar(pair.key) && pair.key.range) {
          found = pair.key as Node;
          node = next as Node;
          continue;
        }
      } else if (yamlLibrary().isSeq(node)) next = node.items[Number(key)] as Node | undefined;
      if (next === undefined || next === null) break;
      node = next;
      found = next;
    }
    return this.#at(found);
  }

  #at(node: Node | null | undefined): YamlPosition {
    return this.#lines.at(node?.range?.[0] ?? 0);
  }

  #fail(node: Node | null | undefined, path: string, message: string): never {
    throw yamlError(this.#file, this.#at(node), message, path);
  }

  #read(node: Node | null | undefined, depth: number, path: string): unknown {
    if (node === null || node === undefined) return null;
    if (++this.#nodes > maximumNodes) this.#fail(node, path, `more than ${maximumNodes} nodes, aliases included`);
    if (depth > maximumDepth) this.#fail(node, path, `nested deeper than ${maximumDepth} levels`);
    if (yamlLibrary().isAlias(node)) {
      const target = this.#targetOf(node);
      if (target === undefined) this.#fail(node, path, `the alias *${node.source} leads nowhere`);
      return this.#read(target, depth + 1, path);
    }
    if (yamlLibrary().isMap(node)) return this.#readMap(node, depth, path);
    if (yamlLibrary().isSeq(node)) return this.#readSequence(node, depth, path);
    if (yamlLibrary().isScalar(node)) return this.#readScalar(node, path);
    return this.#fail(node, path, 'not plain data');
  }

  /** What an alias stands for: the newest node before it that bears its anchor. All are looked up in one walk. */
  #targetOf(alias: Alias): Node | undefined {
    if (this.#targets === undefined) {
      const anchors = new Map<string, Node>();
      const targets = new Map<Alias, Node | undefined>();
      yamlLibrary().visit(this.#document, {
        Alias: (_key, node) => void targets.set(node, anchors.get(node.source)),
        Value: (_key, node) => {
          if (node.anchor !== undefined) anchors.set(node.anchor, node as Node);
        },
      });
      this.#targets = targets;
    }
    return this.#targets.get(alias);
  }

  #readMap(node: YAMLMap, depth: number, path: string): unknown {
    if (node.tag !== undefined && node.tag !== 'tag:yaml.org,2002:map') this.#fail(node, path, `the tag ${node.tag} is not known here`);
    const map: Record<string, unknown> = {};
    for (const item of node.items) {
      const key = keyText(item);
      if (key === undefined) this.#fail((item.key ?? node) as Node, path, 'a key must be text');
      if (key === '<<' && yamlLibrary().isScalar(item.key) && (item.key as Scalar).type === 'PLAIN')
        this.#fail(item.key as Node, path, 'merge keys (<<) are not read; write the fields out');
      const at = appendPath(path, key);
      if (key === '__proto__') this.#fail(item.key as Node, at, 'this key is not allowed');
      if (!isWellFormed(key)) this.#fail(item.key as Node, at, 'a key must be well-formed Unicode');
      if (Object.hasOwn(map, key)) this.#fail(item.key as Node, at, 'this key stands here twice');
      map[key] = this.#read(item.value as Node | null, depth + 1, at);
    }
    return map;
  }

  #readSequence(node: YAMLSeq, depth: number, path: string): unknown {
    if (node.tag !== undefined && node.tag !== 'tag:yaml.org,2002:seq') this.#fail(node, path, `the tag ${node.tag} is not known here`);
    return node.items.map((item, index) => this.#read(item as Node | null, depth + 1, appendPath(path, index)));
  }

  #readScalar(node: Scalar, path: string): unknown {
    const { value, tag, source } = node;
    if (tag === binaryTag) return this.#readBinary(node, path);
    if (tag !== undefined && !knownScalarTags.has(tag)) this.#fail(node, path, `the tag ${tag} is not known here`);
    if (typeof value === 'string') {
      if (!isWellFormed(value)) this.#fail(node, path, 'text must be well-formed Unicode; it holds half of a surrogate pair');
      return value;
    }
    if ((typeof value === 'bigint' || typeof value === 'number') && /^[-+]?0[0-9]/.test(source ?? ''))
      this.#fail(
        node,
        path,
        `${source} begins with a zero, and readers of YAML do not agree on what that means; write it without, or in quotes if it is text`,
      );
    if (typeof value === 'bigint') {
      const safe = value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER);
      return safe ? Number(value) : value;
    }
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) this.#fail(node, path, `${source ?? value} is not a finite number`);
      // 1e20 and 9007199254740993.0 are whole numbers that a double would round or that have another text form.
      if (Number.isInteger(value) && !Number.isSafeInteger(value))
        this.#fail(node, path, `${source ?? value} is a whole number beyond 2^53: write it as an integer`);
      return value === 0 ? 0 : value;
    }
    if (typeof value === 'boolean' || value === null) return value;
    return this.#fail(node, path, `not plain data: ${typeof value}`);
  }

  #readBinary(node: Scalar, path: string): Bytes {
    const text = String(node.source ?? node.value).replace(/\s+/g, '');
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text))
      this.#fail(node, path, '!!binary needs base64 text');
    return Bytes.from(Buffer.from(text, 'base64'));
  }
}

const knownScalarTags: ReadonlySet<string> = new Set(['str', 'int', 'float', 'bool', 'null'].map((name) => `tag:yaml.org,2002:${name}`));

/** A key as text: numbers and booleans are taken as they are written. */
function keyText(item: Pair): string | undefined {
  const { key } = item;
  if (!yamlLibrary().isScalar(key)) return undefined;
  if (typeof key.value === 'string') return key.value;
  return key.source ?? (key.value === null ? undefined : String(key.value));
}
