import type { InvalidIssue } from './errors.ts';
import { metadataMark, resourceMark } from './mark.ts';
import type { Metadata, Pointer, Resource, ResourceInput } from './resource.ts';
import { undefinedVersion } from './resource.ts';
import { isWellFormed, utf8Length, visibleText } from './text.ts';
import { appendPath, freezeSpec, invalid, isPlainMap } from './values.ts';

/** Longest name or id, in UTF-8 bytes. */
export const maximumNameBytes = 1024;

const noTexts: readonly string[] = Object.freeze([]);
const noPairs: Readonly<Record<string, string>> = Object.freeze({});

/** What is wrong with a namespace, type or id; `undefined` when it is fine. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return `expected text, found ${name === null ? 'null' : typeof name}`;
  if (name === '') return 'expected 1 to 1024 bytes, found none';
  if (plainName.test(name)) return undefined;
  if (!isWellFormed(name)) return 'must be well-formed Unicode';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name)) return `must not hold control characters, found ${JSON.stringify(visibleText(name))}`;
  const bytes = utf8Length(name);
  if (bytes > maximumNameBytes) return `must be at most ${maximumNameBytes} UTF-8 bytes, found ${bytes}`;
  return undefined;
}

const plainName = /^[\x20-\x7e]{1,1024}$/;

/** Throws Invalid when a namespace, type or id of a pointer cannot be one. */
export function checkPointer(pointer: Pointer): void {
  checkIsObject(pointer, 'a pointer with namespace, type and id');
  const issues: InvalidIssue[] = [];
  for (const field of ['namespace', 'type', 'id'] as const) {
    const problem = nameProblem(pointer[field]);
    if (problem !== undefined) issues.push({ path: `metadata.${field}`, message: problem });
  }
  if (issues.length > 0) throw invalid(issues);
}

function checkIsObject(value: unknown, expected: string): void {
  if (typeof value !== 'object' || value === null)
    throw invalid([{ path: 'metadata', message: `expected ${expected}, found ${value === null ? 'null' : typeof value}` }]);
}

/** Throws Invalid when a kind cannot be one. */
export function checkKind(kind: { readonly namespace: string; readonly type: string }): void {
  checkIsObject(kind, 'a kind with namespace and type');
  const issues: InvalidIssue[] = [];
  for (const field of ['namespace', 'type'] as const) {
    const problem = nameProblem(kind[field]);
    if (problem !== undefined) issues.push({ path: `metadata.${field}`, message: problem });
  }
  if (issues.length > 0) throw invalid(issues);
}

/**
 * A checked, deeply frozen resource from plain data. What is already such a value comes back as it is; the caller's own
 * objects are copied. Throws Invalid naming every wrong path.
 */
export function makeResource<Spec>(input: ResourceInput<Spec> | Resource<Spec>): Resource<Spec> {
  if (typeof input !== 'object' || input === null) {
    throw invalid([{ path: '', message: `expected a resource with metadata and spec, found ${input === null ? 'null' : typeof input}` }]);
  }
  if (resourceMark.on(input)) return input as Resource<Spec>;
  const metadata = makeMetadata(input.metadata);
  const { spec } = input;
  if (spec === undefined) {
    throw invalid([{ path: 'spec', message: 'expected plain data, found undefined (a resource without a spec is a tombstone)' }], metadata);
  }
  return assembleResource(metadata, freezeSpec(spec, metadata));
}

/** Puts together parts that are known to be checked and frozen. */
export function assembleResource<Spec>(metadata: Metadata, spec: Spec): Resource<Spec> {
  return resourceMark.seal(new PlainResource(metadata, spec)) as Resource<Spec>;
}

/** Freezes metadata whose parts are known to be checked and frozen (made by this room or by a store's own decoder). */
export function assembleMetadata(metadata: Metadata): Metadata {
  return metadataMark.seal(new PlainMetadata(metadata));
}

// Functions, not literals: objects made by one have room for the mark inside, while a literal gets a second object for it. With
// the prototype of all plain objects they are plain themselves.
const PlainResource = function (this: Written<Resource>, metadata: Metadata, spec: unknown): void {
  this.metadata = metadata;
  this.spec = spec;
} as unknown as new (
  metadata: Metadata,
  spec: unknown,
) => Resource;
const PlainMetadata = function (this: Written<Metadata>, parts: Metadata): void {
  this.namespace = parts.namespace;
  this.type = parts.type;
  this.id = parts.id;
  this.version = parts.version;
  this.uid = parts.uid;
  this.phase = parts.phase;
  this.owner = parts.owner;
  this.finalizers = parts.finalizers;
  this.labels = parts.labels;
  this.annotations = parts.annotations;
  this.created = parts.created;
  this.updated = parts.updated;
} as unknown as new (
  parts: Metadata,
) => Metadata;
PlainResource.prototype = Object.prototype;
PlainMetadata.prototype = Object.prototype;

type Written<Value> = { -readonly [Key in keyof Value]: Value[Key] };

/** Checked, frozen metadata with every field filled in. */
export function makeMetadata(input: ResourceInput['metadata'] & Partial<Metadata>): Metadata {
  if (typeof input !== 'object' || input === null) {
    throw invalid([
      { path: 'metadata', message: `expected a map with namespace, type and id, found ${input === null ? 'null' : typeof input}` },
    ]);
  }
  if (metadataMark.on(input)) return input as Metadata;
  const issues: InvalidIssue[] = [];
  for (const field of ['namespace', 'type', 'id'] as const) {
    const problem = nameProblem(input[field]);
    if (problem !== undefined) issues.push({ path: `metadata.${field}`, message: problem });
  }
  const phase = input.phase ?? 'running';
  if (phase !== 'running' && phase !== 'tearingDown') {
    issues.push({ path: 'metadata.phase', message: `expected running or tearingDown, found ${visibleText(String(phase))}` });
  }
  const owner = input.owner ?? '';
  checkText(owner, 'metadata.owner', issues);
  const finalizers = makeTexts(input.finalizers, 'metadata.finalizers', issues);
  const labels = makePairs(input.labels, 'metadata.labels', issues);
  const annotations = makePairs(input.annotations, 'metadata.annotations', issues);
  const { uid = '', created = '', updated = '' } = input;
  checkText(uid, 'metadata.uid', issues);
  checkText(created, 'metadata.created', issues);
  checkText(updated, 'metadata.updated', issues);
  const version = input.version ?? undefinedVersion;
  if (typeof version !== 'string' || version === '') {
    issues.push({ path: 'metadata.version', message: `expected decimal text or ${undefinedVersion}, found ${JSON.stringify(version)}` });
  }
  if (issues.length > 0) {
    const named = issues.some((issue) => /^metadata\.(namespace|type|id)$/.test(issue.path)) ? undefined : input;
    throw invalid(issues, named);
  }
  return assembleMetadata({
    namespace: input.namespace,
    type: input.type,
    id: input.id,
    version,
    uid,
    phase,
    owner,
    finalizers,
    labels,
    annotations,
    created,
    updated,
  });
}

function checkText(value: unknown, path: string, issues: InvalidIssue[]): value is string {
  if (value === '') return true;
  if (typeof value !== 'string') {
    issues.push({ path, message: `expected text, found ${value === null ? 'null' : typeof value}` });
    return false;
  }
  if (isWellFormed(value)) return true;
  issues.push({ path, message: 'must be well-formed Unicode' });
  return false;
}

/** Checks an ordered set of text: finalizers. */
export function makeTexts(input: readonly string[] | undefined, path: string, issues: InvalidIssue[]): readonly string[] {
  if (input === undefined || input.length === 0) return noTexts;
  if (!Array.isArray(input)) {
    issues.push({ path, message: 'expected a list of text' });
    return noTexts;
  }
  const texts = new Set<string>();
  input.forEach((value, index) => {
    const at = appendPath(path, index);
    if (!checkText(value, at, issues)) return;
    const problem = nameProblem(value);
    if (problem !== undefined) issues.push({ path: at, message: problem });
    texts.add(value);
  });
  return Object.freeze([...texts]);
}

/** Checks labels or annotations. */
export function makePairs(
  input: Readonly<Record<string, string>> | undefined,
  path: string,
  issues: InvalidIssue[],
): Readonly<Record<string, string>> {
  if (input === undefined) return noPairs;
  if (!isPlainMap(input)) {
    issues.push({ path, message: 'expected a plain map of text' });
    return noPairs;
  }
  const keys = Object.keys(input);
  if (keys.length === 0) return noPairs;
  const pairs: Record<string, string> = {};
  for (const key of keys) {
    const problem = key === '__proto__' ? 'this key is not allowed' : nameProblem(key);
    const value = problem === undefined ? input[key] : undefined;
    // The text of a path is made only when something is wrong.
    if (typeof value === 'string' && isWellFormed(value)) {
      pairs[key] = value;
      continue;
    }
    const at = appendPath(path, key);
    if (problem !== undefined) issues.push({ path: at, message: problem });
    else if (typeof value === 'number' || typeof value === 'boolean') {
      issues.push({ path: at, message: `expected text, found a ${typeof value}: write it in quotes` });
    } else checkText(value, at, issues);
  }
  return Object.freeze(pairs);
}
