import type { Metadata, ResourcePhase } from './resource.ts';

/** An ordered set of text under edit. */
export interface FinalizerDraft {
  /** `true` when it was not there before. */
  add(finalizer: string): boolean;
  /** `true` when it was there. */
  remove(finalizer: string): boolean;
  has(finalizer: string): boolean;
  /** Replaces all. */
  set(finalizers: Iterable<string>): void;
  readonly size: number;
  [Symbol.iterator](): Iterator<string>;
}

/** A text map under edit (labels, annotations). */
export interface TextMapDraft {
  get(key: string): string | undefined;
  has(key: string): boolean;
  set(key: string, value: string): void;
  delete(key: string): boolean;
  /** Replaces all. */
  replace(values: Readonly<Record<string, string>>): void;
  entries(): IterableIterator<[string, string]>;
}

/** Makes every level of a plain value writable. */
export type Writable<T> = T extends readonly (infer Item)[]
  ? Writable<Item>[]
  : T extends import('./bytes.ts').Bytes
    ? T
    : T extends object
      ? { -readonly [Key in keyof T]: Writable<T[Key]> }
      : T;

/**
 * A resource under edit. Version, uid, timestamps and owner can be read but not written. `spec` is a mutable
 * copy made at its first access; assigning replaces it whole.
 */
export interface ResourceDraft<Spec = unknown> {
  readonly metadata: Metadata;
  phase: ResourcePhase;
  readonly finalizers: FinalizerDraft;
  readonly labels: TextMapDraft;
  readonly annotations: TextMapDraft;
  get spec(): Writable<Spec>;
  set spec(value: Spec | Writable<Spec>);
}
