/** A resource lives on (`running`) until somebody marks it (`tearingDown`); it never goes back. */
export type ResourcePhase = 'running' | 'tearingDown';

/** Namespace and type: what a list or a watch is about. */
export interface Kind {
  readonly namespace: string;
  readonly type: string;
}

declare const specType: unique symbol;

/** A kind whose resources have a spec of this type; plain kinds are `TypedKind<unknown>`. */
export interface TypedKind<Spec = unknown> extends Kind {
  readonly [specType]?: Spec;
}

/** Names one resource. `Spec` is a compile-time mark only; it is put there by a definition. */
export interface Pointer<Spec = unknown> extends TypedKind<Spec> {
  readonly id: string;
}

/** A pointer with the version that was seen. */
export interface Reference extends Pointer {
  readonly version: string;
}

/** The version of a resource that was never written. */
export const undefinedVersion = 'undefined';

/** The strictly defined half of a resource. Deeply frozen. */
export interface Metadata extends Reference {
  /**
   * Revision of the last write as opaque decimal text; compared for equality only. `undefined` (the word) until the
   * first write.
   */
  readonly version: string;
  /** Names one incarnation; empty until the first write. */
  readonly uid: string;
  readonly phase: ResourcePhase;
  /** The only actor that may update or destroy the resource; empty: nobody owns it. */
  readonly owner: string;
  /** An ordered set. */
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** RFC 3339 text; empty until the first write. Survives updates. */
  readonly created: string;
  /** RFC 3339 text of the last write; empty until the first write. */
  readonly updated: string;
}

/** Plain data that a spec may hold. `Bytes` is the one class. */
export type SpecValue =
  | string
  | number
  | boolean
  | null
  | bigint
  | import('./bytes.ts').Bytes
  | readonly SpecValue[]
  | { readonly [key: string]: SpecValue };

/** Metadata and spec: a plain, deeply frozen value, shared by every reader. To change one, make a draft. */
export interface Resource<Spec = unknown> {
  readonly metadata: Metadata;
  readonly spec: Spec;
}

/** A resource that is not there: only metadata, no spec. */
export interface Tombstone {
  readonly metadata: Metadata;
  readonly spec?: undefined;
}

/** What an author writes down; everything left out has the default of its type. */
export interface ResourceInput<Spec = unknown> {
  readonly metadata: {
    readonly namespace: string;
    readonly type: string;
    readonly id: string;
    readonly version?: string;
    readonly owner?: string;
    readonly phase?: ResourcePhase;
    readonly finalizers?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Spec;
}
