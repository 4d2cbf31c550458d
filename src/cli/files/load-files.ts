import { dirname, join, resolve } from 'node:path';
import type { Environment, FilePort } from '../../environment/index.ts';
import type { Resource } from '../../resource/index.ts';
import { findError, makeResource, SteadystateError } from '../../resource/index.ts';
import type { YamlDocument } from '../../wire/index.ts';
import { maximumYamlBytes, parseYaml, yamlError } from '../../wire/index.ts';
import { UsageError } from '../exit-codes.ts';
import type { CliIo } from '../io.ts';
import { findMask } from '../output/mask.ts';
import { utf8Text } from '../read-text.ts';
import type { TypesLookup } from '../types-lookup.ts';

/** One resource of a file, and where it stands. */
export interface FileResource {
  readonly resource: Resource;
  /** The version that the file asks for; `undefined`: any. */
  readonly version: string | undefined;
  /** The folder that relative paths in it are relative to. */
  readonly folder: string;
  /** `file:line:column` of a path such as `spec.services.api`. */
  at(path: string): string;
}

interface Source {
  readonly name: string;
  readonly folder: string;
  readonly text: string;
}

/** Reads the files, folders and `-` of `-f`. */
export async function loadResourceFiles(
  paths: readonly string[],
  options: { readonly io: CliIo; readonly environment: Environment; readonly types: TypesLookup; readonly namespace: string | undefined },
): Promise<readonly FileResource[]> {
  const resources: FileResource[] = [];
  for (const path of paths) {
    for (const source of await sourcesOf(path, options.io, options.environment)) {
      for (const document of parseYaml(source.text, { file: source.name })) {
        if (document.value === null) continue;
        resources.push(...resourcesOf(document, source, options.types, options.namespace));
      }
    }
  }
  if (resources.length === 0) throw new UsageError(`nothing to do: no resource in ${paths.join(', ')}`);
  return resources;
}

/** Says early that something named by `-f` is not there, before a store is opened for it. */
export async function checkPaths(paths: readonly string[], io: CliIo, environment: Environment): Promise<void> {
  for (const path of paths) if (path !== '-') await findPath(path, io, environment);
}

async function findPath(path: string, io: CliIo, { files }: Environment) {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) throw new UsageError(`${path} is a URL; download it first and name the file`);
  const full = resolve(io.directory, path);
  const stat = await files.stat(full);
  if (stat === undefined) throw new SteadystateError('NotFound', `${path} does not exist (looked for ${full})`);
  return { full, stat };
}

async function sourcesOf(path: string, io: CliIo, environment: Environment): Promise<readonly Source[]> {
  if (path === '-') return [{ name: '<stdin>', folder: io.directory, text: await io.readStandardInput() }];
  const { full } = await findPath(path, io, environment);
  const { files } = environment;
  const real = await realPathOf(full, files);
  // A pipe (`-f <(…)`) has a name that leads nowhere: it is read as it is, and is nowhere.
  if (real === undefined) return [await readSource(full, path, io.directory, environment)];
  if ((await files.stat(real))?.kind !== 'directory') return [await readSource(real, path, dirname(real), environment)];
  const names = ((await files.list(real)) ?? []).filter((name) => /\.(?:ya?ml|json)$/i.test(name));
  const sources: Source[] = [];
  for (const name of names) {
    const inside = join(real, name);
    // A link could lead anywhere; what is meant is named by itself.
    if ((await files.stat(inside))?.kind !== 'file')
      throw new SteadystateError('Invalid', `${join(path, name)} is not a plain file; name what it points to`);
    sources.push(await readSource(inside, join(path, name), real, environment));
  }
  if (sources.length === 0) throw new SteadystateError('NotFound', `the folder ${path} holds no .yaml, .yml or .json file`);
  return sources;
}

async function realPathOf(path: string, files: FilePort): Promise<string | undefined> {
  try {
    return await files.realPath(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function readSource(path: string, name: string, folder: string, environment: Environment): Promise<Source> {
  try {
    return { name, folder, text: utf8Text(await environment.files.read(path, { maxBytes: maximumYamlBytes }), name) };
  } catch (error) {
    const code = systemCode(error);
    if (code === 'EFBIG') throw new SteadystateError('Invalid', `${name} is longer than ${maximumYamlBytes} bytes`, { cause: error });
    if (code === 'ENOENT') throw new SteadystateError('NotFound', `${name} is a link that leads nowhere`, { cause: error });
    throw error;
  }
}

function systemCode(error: unknown): string | undefined {
  return (error as { readonly code?: string }).code;
}

const topFields: ReadonlySet<string> = new Set(['metadata', 'spec']);
const metadataFields: ReadonlySet<string> = new Set(['namespace', 'type', 'id', 'labels', 'annotations', 'finalizers', 'version']);
/** What `get -o yaml` prints besides; it is read and ignored. */
const readOnlyFields: ReadonlySet<string> = new Set(['uid', 'phase', 'owner', 'created', 'updated']);

function resourcesOf(document: YamlDocument, source: Source, types: TypesLookup, namespace: string | undefined): readonly FileResource[] {
  const { value } = document;
  // The list form of `get -o json`.
  if (isMap(value) && Array.isArray(value.items) && Object.keys(value).length === 1) {
    return value.items.map((item, index) => readResource(item, ['items', index], document, source, types, namespace));
  }
  return [readResource(value, [], document, source, types, namespace)];
}

function readResource(
  value: unknown,
  prefix: readonly (string | number)[],
  document: YamlDocument,
  source: Source,
  types: TypesLookup,
  namespace: string | undefined,
): FileResource {
  const fail = (path: readonly (string | number)[], message: string): never => {
    throw yamlError(source.name, document.position([...prefix, ...path]), message, path.join('.'));
  };
  if (!isMap(value)) return fail([], 'expected a resource: a map of metadata and spec');
  for (const key of Object.keys(value)) if (!topFields.has(key)) fail([key], `unknown field; a resource has metadata and spec`);
  const { metadata } = value;
  if (!isMap(metadata)) return fail(['metadata'], 'expected a map with type and id');
  for (const key of Object.keys(metadata)) {
    if (!metadataFields.has(key) && !readOnlyFields.has(key))
      fail(['metadata', key], `unknown field; expected ${[...metadataFields].join(', ')}`);
  }
  for (const key of ['namespace', 'type', 'id', 'version'] as const) {
    const item = metadata[key];
    if (item !== undefined && typeof item !== 'string')
      fail(['metadata', key], `expected text, found ${item === null ? 'nothing' : typeof item}: write it in quotes`);
  }
  if (metadata.type === undefined) fail(['metadata'], 'needs a type');
  if (metadata.id === undefined) fail(['metadata'], 'needs an id');
  if (!Object.hasOwn(value, 'spec')) fail([], 'needs a spec');
  const known = findType(metadata.type as string, types, fail);
  const hidden = known.definition?.sensitivity === 'sensitive' ? findMask(value.spec, ['spec']) : undefined;
  if (hidden !== undefined) fail(hidden, 'this is what a look shows instead of a sensitive value; write the value itself');
  const at = (path: string): string => {
    const { line, column } = document.position([...prefix, ...pathSteps(path)]);
    return `${source.name}:${line}:${column}`;
  };
  try {
    const resource = makeResource({
      metadata: {
        namespace: (metadata.namespace as string | undefined) ?? namespace ?? known.defaultNamespace,
        type: known.type,
        id: metadata.id as string,
        labels: metadata.labels as Record<string, string> | undefined,
        annotations: metadata.annotations as Record<string, string> | undefined,
        finalizers: metadata.finalizers as readonly string[] | undefined,
      } as Resource['metadata'],
      spec: value.spec,
    });
    return { resource, version: metadata.version as string | undefined, folder: source.folder, at };
  } catch (error) {
    const issue = findError(error)?.issues[0];
    if (issue === undefined) throw error;
    return fail(pathSteps(issue.path), issue.message);
  }
}

function findType(
  name: string,
  types: TypesLookup,
  fail: (path: readonly string[], message: string) => never,
): ReturnType<TypesLookup['find']> {
  try {
    return types.find(name);
  } catch (error) {
    return fail(['metadata', 'type'], (error as Error).message);
  }
}

/** The steps of a path such as `spec.a[0]["odd key"]`. */
export function pathSteps(path: string): readonly (string | number)[] {
  const steps: (string | number)[] = [];
  for (const match of path.matchAll(/\[("(?:[^"\\]|\\.)*")\]|\[([0-9]+)\]|([^.[\]]+)/g)) {
    if (match[1] !== undefined) steps.push(JSON.parse(match[1]) as string);
    else if (match[2] !== undefined) steps.push(Number(match[2]));
    else steps.push(match[3] as string);
  }
  return steps;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
