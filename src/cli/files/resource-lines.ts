import type { FilePort } from '../../environment/index.ts';
import { findError, fromTagged, makeResource, type Resource, SteadystateError, toTagged } from '../../resource/index.ts';
import { maximumYamlBytes, parseYaml, stringifyYaml } from '../../wire/index.ts';
import { fileForm } from '../output/format.ts';
import { findMask } from '../output/mask.ts';

/** How resources are written one after another: YAML documents, or one JSON text a line. */
export type LinesFormat = 'yaml' | 'json';

/** One resource with all of its metadata, as text that `readResources` reads back as exactly the same. */
export function resourceText({ metadata, spec }: Pick<Resource, 'metadata' | 'spec'>, format: LinesFormat): string {
  const form = fileForm({ metadata, spec });
  return format === 'yaml' ? `---\n${stringifyYaml(form)}` : `${JSON.stringify({ ...form, spec: toTagged(spec) })}\n`;
}

/** A resource of a file, and where it begins. */
export interface ReadResource {
  readonly resource: Resource;
  readonly place: string;
}

const chunkBytes = 1 << 20;

/**
 * Reads a file of resources, few at a time in memory. JSON lines and YAML documents are told apart by the first line, and where
 * that is JSON by whether a document of YAML follows it. Throws Invalid with file and line for what is not a resource.
 */
export async function* readResources(files: FilePort, path: string, name: string): AsyncGenerator<ReadResource> {
  let json: boolean | undefined;
  let first: { readonly line: string; readonly number: number } | undefined;
  let document: string[] = [];
  let size = 0;
  let begin = 1;
  let number = 0;
  const finish = function* (): Generator<ReadResource> {
    const text = document.join('\n');
    document = [];
    size = 0;
    if (text.trim() !== '') yield* fromYaml(text, name, begin);
  };
  for await (const line of lines(files, path, name)) {
    number++;
    if (json === undefined && line.trim() !== '' && !line.startsWith('#')) {
      if (first !== undefined) json = !/^(?:---|\.\.\.)(?:\s|$)/.test(line);
      else if (isJsonLine(line)) first = { line, number };
      else json = false;
      if (json === true && first !== undefined) {
        yield* fromJson(first.line, name, first.number);
        document = [];
        size = 0;
      }
    }
    if (json === true) {
      if (line.trim() !== '') yield* fromJson(line, name, number);
    } else if (/^---(?:\s|$)/.test(line)) {
      yield* finish();
      begin = number;
      document.push(line.slice(3));
    } else {
      document.push(line);
      size += line.length + 1;
      if (size > maximumYamlBytes)
        throw invalidAt(
          `${name}:${begin}`,
          `a document of more than ${maximumYamlBytes} bytes; put each resource into a document of its own`,
        );
    }
  }
  if (json === undefined && first !== undefined) yield* fromJson(first.line, name, first.number);
  else yield* finish();
}

function isJsonLine(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object';
  } catch {
    return false;
  }
}

async function* lines(files: FilePort, path: string, name: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  try {
    for (let offset = 0; ; offset += chunkBytes) {
      const chunk = await files.readRange(path, offset, chunkBytes);
      const parts = (rest + decoder.decode(chunk, { stream: chunk.length === chunkBytes })).split('\n');
      rest = parts.pop() ?? '';
      if (rest.length > maximumYamlBytes) throw new SteadystateError('Invalid', `${name}: a line of more than ${maximumYamlBytes} bytes`);
      for (const part of parts) yield part.endsWith('\r') ? part.slice(0, -1) : part;
      if (chunk.length < chunkBytes) break;
    }
  } catch (cause) {
    if (cause instanceof TypeError) throw new SteadystateError('Invalid', `${name} is not UTF-8 text`, { cause });
    throw cause;
  }
  if (rest !== '') yield rest;
}

function* fromJson(line: string, name: string, number: number): Generator<ReadResource> {
  const place = `${name}:${number}`;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw invalidAt(place, `this line is no JSON text: ${(error as Error).message}`);
  }
  // JSON.parse rounds numbers and drops keys that stand there twice; what it read exactly gives the same text again.
  if (!isExact(value, line)) value = parseYaml(line, { file: name, line: number })[0]?.value;
  try {
    if (isMap(value) && Object.hasOwn(value, 'spec')) value = { ...value, spec: fromTagged(value.spec) };
  } catch (error) {
    throw invalidAt(place, `spec: cannot be read: ${(error as Error).message}`);
  }
  yield { resource: resourceOf(value, place), place };
}

function isExact(value: unknown, line: string): boolean {
  try {
    return JSON.stringify(value) === line.trim() && !line.includes('"__proto__"');
  } catch (error) {
    // Too deep to be written down: the careful reader says so.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function* fromYaml(text: string, name: string, begin: number): Generator<ReadResource> {
  const documents = parseYaml(text, { file: name, line: begin });
  for (const { value, position } of documents) {
    if (value === null) continue;
    const { line } = position([]);
    // The list form of `get -o yaml`.
    const all = isMap(value) && Array.isArray(value.items) && Object.keys(value).length === 1 ? value.items : [value];
    for (const each of all) yield { resource: resourceOf(each, `${name}:${line}`), place: `${name}:${line}` };
  }
}

const fields: ReadonlySet<string> = new Set([
  'namespace',
  'type',
  'id',
  'version',
  'uid',
  'phase',
  'owner',
  'finalizers',
  'labels',
  'annotations',
  'created',
  'updated',
]);

function resourceOf(value: unknown, place: string): Resource {
  if (!isMap(value)) throw invalidAt(place, 'expected a resource: a map of metadata and spec');
  for (const key of Object.keys(value))
    if (key !== 'metadata' && key !== 'spec') throw invalidAt(place, `${key}: unknown field; a resource has metadata and spec`);
  const { metadata, spec } = value;
  if (!isMap(metadata)) throw invalidAt(place, 'metadata: expected a map with namespace, type and id');
  for (const key of Object.keys(metadata)) if (!fields.has(key)) throw invalidAt(place, `metadata.${key}: unknown field`);
  const mask = findMask(spec, ['spec']);
  if (mask !== undefined) throw invalidAt(place, `${mask.join('.')}: this is what a look shows instead of a sensitive value`);
  try {
    return makeResource({ metadata, spec } as unknown as Resource);
  } catch (error) {
    const issue = findError(error)?.issues[0];
    throw issue === undefined ? error : invalidAt(place, `${issue.path}: ${issue.message}`);
  }
}

function invalidAt(place: string, message: string): SteadystateError {
  return new SteadystateError('Invalid', `${place}: ${message}`, { issues: [{ path: place, message }] });
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
