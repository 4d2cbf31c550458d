import { Bytes } from './bytes.ts';
import type { FinalizerDraft, ResourceDraft, TextMapDraft, Writable } from './draft.ts';
import { sameSet, sameValue } from './equality.ts';
import type { InvalidIssue } from './errors.ts';
import { assembleMetadata, assembleResource, makePairs, makeTexts } from './make-resource.ts';
import type { Metadata, Resource, ResourcePhase } from './resource.ts';
import { freezeSpec, invalid } from './values.ts';

/** A resource being edited: `finishDraft` answers what became of it. */
export class OpenDraft<Spec> implements ResourceDraft<Spec> {
  readonly original: Resource<Spec>;
  readonly finalizers: FinalizerDraft;
  readonly labels: TextMapDraft;
  readonly annotations: TextMapDraft;
  #phase: ResourcePhase;
  #spec: { value: unknown } | undefined;

  constructor(original: Resource<Spec>) {
    this.original = original;
    this.#phase = original.metadata.phase;
    this.finalizers = new Finalizers(original.metadata.finalizers);
    this.labels = new TextMap(original.metadata.labels);
    this.annotations = new TextMap(original.metadata.annotations);
    // `draft.finalizers = […]` must throw, not get lost.
    Object.freeze(this);
  }

  get metadata(): Metadata {
    return this.original.metadata;
  }

  get phase(): ResourcePhase {
    return this.#phase;
  }

  set phase(phase: ResourcePhase) {
    if (phase !== 'running' && phase !== 'tearingDown') {
      throw invalid(
        [{ path: 'metadata.phase', message: `expected running or tearingDown, found ${String(phase)}` }],
        this.original.metadata,
      );
    }
    this.#phase = phase;
  }

  get spec(): Writable<Spec> {
    this.#spec ??= { value: writableCopy(this.original.spec) };
    return this.#spec.value as Writable<Spec>;
  }

  set spec(value: Spec | Writable<Spec>) {
    this.#spec = { value };
  }

  /** The edited resource, checked and frozen; `original` itself when nothing changed. Throws Invalid. */
  finish(): Resource<Spec> {
    const { metadata, spec } = this.original;
    const issues: InvalidIssue[] = [];
    const finalizers = this.finalizers as Finalizers;
    const nextFinalizers = finalizers.touched ? makeTexts([...finalizers], 'metadata.finalizers', issues) : metadata.finalizers;
    const labels = (this.labels as TextMap).finish('metadata.labels', issues);
    const annotations = (this.annotations as TextMap).finish('metadata.annotations', issues);
    if (issues.length > 0) throw invalid(issues, metadata);
    const nextSpec = this.#finishSpec();
    const sameMetadata =
      this.#phase === metadata.phase &&
      sameSet(nextFinalizers, metadata.finalizers) &&
      sameValue(labels, metadata.labels) &&
      sameValue(annotations, metadata.annotations);
    if (sameMetadata && nextSpec === spec) return this.original;
    const nextMetadata = sameMetadata
      ? metadata
      : assembleMetadata({ ...metadata, phase: this.#phase, finalizers: nextFinalizers, labels, annotations });
    return assembleResource(nextMetadata, nextSpec);
  }

  #finishSpec(): Spec {
    const { metadata, spec } = this.original;
    if (this.#spec === undefined) return spec;
    const { value } = this.#spec;
    if (value === undefined) throw invalid([{ path: 'spec', message: 'expected plain data, found undefined' }], metadata);
    // Checked before it is compared: what is no plain data may look like an empty map.
    const next = freezeSpec(value, metadata) as Spec;
    return sameValue(next, spec) ? spec : next;
  }
}

export function openDraft<Spec>(resource: Resource<Spec>): OpenDraft<Spec> {
  return new OpenDraft(resource);
}

export function finishDraft<Spec>(draft: OpenDraft<Spec>): Resource<Spec> {
  return draft.finish();
}

function writableCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Bytes.is(value)) return value;
  if (Array.isArray(value)) return value.map(writableCopy);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = writableCopy((value as Record<string, unknown>)[key]);
  return copy;
}

class Finalizers implements FinalizerDraft {
  #texts: Set<string>;
  touched = false;

  constructor(texts: readonly string[]) {
    this.#texts = new Set(texts);
  }

  get size(): number {
    return this.#texts.size;
  }

  add(finalizer: string): boolean {
    if (this.#texts.has(finalizer)) return false;
    this.touched = true;
    this.#texts.add(finalizer);
    return true;
  }

  remove(finalizer: string): boolean {
    if (!this.#texts.delete(finalizer)) return false;
    this.touched = true;
    return true;
  }

  has(finalizer: string): boolean {
    return this.#texts.has(finalizer);
  }

  set(finalizers: Iterable<string>): void {
    this.touched = true;
    this.#texts = new Set(finalizers);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#texts.values();
  }
}

class TextMap implements TextMapDraft {
  readonly #original: Readonly<Record<string, string>>;
  #map: Map<string, string> | undefined;

  constructor(original: Readonly<Record<string, string>>) {
    this.#original = original;
  }

  get(key: string): string | undefined {
    if (this.#map !== undefined) return this.#map.get(key);
    return Object.hasOwn(this.#original, key) ? this.#original[key] : undefined;
  }

  has(key: string): boolean {
    return this.#map === undefined ? Object.hasOwn(this.#original, key) : this.#map.has(key);
  }

  set(key: string, value: string): void {
    this.#edit().set(key, value);
  }

  delete(key: string): boolean {
    return this.#edit().delete(key);
  }

  replace(values: Readonly<Record<string, string>>): void {
    this.#map = new Map(Object.entries(values));
  }

  entries(): IterableIterator<[string, string]> {
    return (this.#map ?? new Map(Object.entries(this.#original))).entries();
  }

  finish(path: string, issues: InvalidIssue[]): Readonly<Record<string, string>> {
    if (this.#map === undefined) return this.#original;
    if (this.#map.has('__proto__')) {
      issues.push({ path: `${path}["__proto__"]`, message: 'this key is not allowed' });
      return this.#original;
    }
    return makePairs(Object.fromEntries(this.#map), path, issues);
  }

  #edit(): Map<string, string> {
    this.#map ??= new Map(Object.entries(this.#original));
    return this.#map;
  }
}
