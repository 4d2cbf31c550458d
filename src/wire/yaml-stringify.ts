import { Bytes, replaceHidden } from '../resource/index.ts';
import { yamlLibrary } from './yaml-library.ts';

/** YAML text of plain data that reads back as exactly the same. */
export function stringifyYaml(value: unknown): string {
  const { Document, Scalar, visit } = yamlLibrary();
  const document = new Document(null, { version: '1.2', schema: 'core', aliasDuplicateObjects: false });
  document.contents = document.createNode(plain(value), { aliasDuplicateObjects: false }) as never;
  visit(document, {
    Scalar(key, node) {
      const item = node.value;
      if (Bytes.is(item)) {
        const scalar = new Scalar(item.toBase64());
        scalar.tag = '!!binary';
        scalar.type = 'QUOTE_DOUBLE';
        return scalar;
      }
      if (typeof item === 'string' && key !== 'key' && isLines(item)) node.type = 'BLOCK_LITERAL';
      else if (typeof item === 'string' && needsQuotes(item)) node.type = 'QUOTE_DOUBLE';
      return undefined;
    },
  });
  // Only text in double quotes holds any of these here, and there an escape is the same character.
  return replaceHidden(document.toString({ lineWidth: 0, flowCollectionPadding: false }), (code) =>
    code < 0x20 ? String.fromCharCode(code) : code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`,
  );
}

/** Bytes are wrapped so that the library takes each as one scalar. */
function plain(value: unknown): unknown {
  if (Bytes.is(value)) return new (yamlLibrary().Scalar)(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

/** Text of several lines, such as a program, that people can read and edit line by line. */
function isLines(text: string): boolean {
  return /^[^\s]/.test(text) && /\n./.test(text) && /[^\s]\n?$/.test(text) && !isHidden(text);
}

/** Holds a character that a terminal obeys, or that nobody sees, or that YAML cannot hold as it is. */
function isHidden(text: string): boolean {
  const line = text.replaceAll('\n', '');
  return /[\ufffe\uffff\t]/.test(text) || replaceHidden(line, () => '!') !== line;
}

/** Text that plain style would read back as something else, here or in a YAML 1.1 reader (Go's, Python's). */
function needsQuotes(text: string): boolean {
  if (isHidden(text)) return true;
  if (/^(?:y|n|yes|no|on|off|true|false|null|~)$/i.test(text)) return true;
  if (/^[-+.]?[0-9]/.test(text) || /^[-+]?\.(?:inf|nan)$/i.test(text) || text === '=' || text === '<<') return true;
  return /^\s|\s$/.test(text);
}

/**
 * The compact form for the wire: JSON where JSON says all of it, which every YAML reader takes and which is many times
 * faster. Characters that a YAML reader refuses unescaped are escaped.
 */
export function compactYaml(value: unknown): string {
  if (!fitsJson(value)) return stringifyYaml(value);
  const text = JSON.stringify(value);
  return unprintable.test(text)
    ? text.replace(unprintableAll, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : text;
}

const unprintable = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/;
const unprintableAll = new RegExp(unprintable, 'g');

function fitsJson(value: unknown): boolean {
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (Bytes.is(value)) return false;
  if (Array.isArray(value)) return value.every(fitsJson);
  for (const key of Object.keys(value)) if (!fitsJson((value as Record<string, unknown>)[key])) return false;
  return true;
}
