import type { SpanContext } from '../environment/index.ts';
import type { Bytes, ResourcePhase, ResourceQuery } from '../resource/index.ts';

/** Resumes any watch of the store that made it, whatever its kind or query. Opaque. */
export type Bookmark = Bytes;

export interface CallOptions {
  /**
   * Ends waiting. A write that was already submitted is not cancelled: it rejects as Ambiguous. An abort before
   * rejects with the signal's reason.
   */
  readonly signal?: AbortSignal;
  /** Whose part this call is, for tracing (`traced`, and a server far away). */
  readonly span?: SpanContext;
}

export interface ReadOptions extends CallOptions {
  /**
   * Skips what a definition would decode: the spec is what is stored or what came over the wire, whatever its type says. What is
   * read so can be written back as it is. @default false
   */
  readonly raw?: boolean;
}

export interface ListOptions extends ReadOptions, ResourceQuery {}

export interface CreateOptions extends CallOptions {
  /** The owner of the new resource. @default '' (nobody) */
  readonly owner?: string;
  /** Who writes: the store remembers it with the finalizers that this write adds. At most 1024 bytes, and never checked against anything. @default '' (nobody said) */
  readonly actor?: string;
}

export interface UpdateOptions extends CallOptions {
  /** Must equal the stored owner exactly. @default '' */
  readonly owner?: string;
  /** The version that the stored resource must have; counts over the resource's own. */
  readonly currentVersion?: string;
  /** The phase that the stored resource must have. @default 'running' */
  readonly expectedPhase?: ResourcePhase | 'any';
  /** Who writes: the store remembers it with the finalizers that this write adds. At most 1024 bytes, and never checked against anything. @default '' (nobody said) */
  readonly actor?: string;
}

export interface DestroyOptions extends CallOptions {
  /** Must equal the stored owner exactly. @default '' */
  readonly owner?: string;
  /** Only this incarnation; another one is an incarnation conflict. */
  readonly uid?: string;
}

export interface WatchOptions extends ReadOptions {
  /** The newest n events first, oldest of them first, then live. Suppresses the initial event. Not with `startFromBookmark`. */
  readonly tailEvents?: number;
  /** Goes on right after this bookmark. Suppresses the initial event. InvalidBookmark when it is foreign, of the future, or expired. */
  readonly startFromBookmark?: Bookmark;
  /** Ends with `errored` instead of being coalesced when it lags too far. @default false */
  readonly strict?: boolean;
}

export interface WatchKindOptions extends WatchOptions, ResourceQuery {
  /** `created` for everything that is there, sorted by id, then `bootstrapped`. Not with the two above. @default false */
  readonly bootstrapContents?: boolean;
  /** One `noop` with a bookmark at the start (after `bootstrapped`). @default false */
  readonly bootstrapBookmark?: boolean;
}
