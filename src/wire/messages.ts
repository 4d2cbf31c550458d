import type { Codec } from './codec.ts';
import { boolean, bytes, int32, int64, message, nested, optional, repeated, text, textMap } from './codec.ts';

/** The messages of `cosi.resource`, by the protocol's field numbers; fields from 1000 up are ours and skipped by others. */

export interface WireTimestamp {
  readonly seconds: number;
  readonly nanos: number;
}
export const timestampCodec: Codec<WireTimestamp> = message({ seconds: int64(1), nanos: int32(2) });

export interface WireMetadata {
  readonly namespace: string;
  readonly type: string;
  readonly id: string;
  readonly version: string;
  readonly owner: string;
  readonly phase: string;
  readonly created?: WireTimestamp | undefined;
  readonly updated?: WireTimestamp | undefined;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly uid: string;
}
export const metadataCodec: Codec<WireMetadata> = message<WireMetadata>({
  namespace: text(1),
  type: text(2),
  id: text(3),
  version: text(4),
  owner: text(5),
  phase: text(6),
  created: optional(nested(7, timestampCodec)),
  updated: optional(nested(8, timestampCodec)),
  finalizers: repeated(text(9)),
  labels: textMap(10),
  annotations: textMap(11),
  uid: text(1000),
});

export interface WireSpec {
  readonly protoSpec: Uint8Array;
  readonly yamlSpec: string;
}
export const specCodec: Codec<WireSpec> = message({ protoSpec: bytes(1), yamlSpec: text(2) });

export interface WireResource {
  readonly metadata?: WireMetadata;
  readonly spec?: WireSpec;
}
export const resourceCodec: Codec<WireResource> = message<WireResource>({
  metadata: optional(nested(1, metadataCodec)),
  spec: optional(nested(2, specCodec)),
});

export interface WireLabelTerm {
  readonly key: string;
  readonly op: number;
  readonly value: readonly string[];
  readonly invert: boolean;
}
export interface WireLabelQuery {
  readonly terms: readonly WireLabelTerm[];
}
export const labelQueryCodec: Codec<WireLabelQuery> = message({
  terms: repeated(nested(1, message<WireLabelTerm>({ key: text(1), op: int32(2), value: repeated(text(3)), invert: boolean(5) }))),
});
export interface WireIdQuery {
  readonly regexp: string;
}
export const idQueryCodec: Codec<WireIdQuery> = message({ regexp: text(1) });

export const wireEventTypes = ['created', 'updated', 'destroyed', 'bootstrapped', 'errored', 'noop'] as const;

export interface WireEvent {
  readonly resource?: WireResource;
  readonly eventType: number;
  readonly old?: WireResource;
  readonly error?: string;
  readonly bookmark?: Uint8Array;
  readonly revision?: number;
  readonly resync: boolean;
  /** Of a watch of several kinds: code and kind of what ended for one of them. */
  readonly errorCode: string;
  readonly errorNamespace: string;
  readonly errorType: string;
}
export const eventCodec: Codec<WireEvent> = message<WireEvent>({
  resource: optional(nested(1, resourceCodec)),
  eventType: int32(2),
  old: optional(nested(3, resourceCodec)),
  error: optional(text(4)),
  bookmark: optional(bytes(5)),
  revision: optional(int64(1000)),
  resync: boolean(1001),
  errorCode: text(1002),
  errorNamespace: text(1003),
  errorType: text(1004),
});

export interface WirePointer {
  readonly namespace: string;
  readonly type: string;
  readonly id: string;
}
const pointerFields = { namespace: text(1), type: text(2), id: text(3) };

export interface GetRequest extends WirePointer {}
export const getRequestCodec: Codec<GetRequest> = message<GetRequest>(pointerFields);

export interface ResourceAnswer {
  readonly resource?: WireResource;
}
/** GetResponse, ListResponse, CreateResponse and UpdateResponse have one form. */
export const resourceAnswerCodec: Codec<ResourceAnswer> = message<ResourceAnswer>({ resource: optional(nested(1, resourceCodec)) });

export interface QueryOptions {
  readonly labelQuery: readonly WireLabelQuery[];
  readonly idQuery?: WireIdQuery;
}
export interface ListRequest {
  readonly namespace: string;
  readonly type: string;
  readonly options: QueryOptions;
}
export const listRequestCodec: Codec<ListRequest> = message<ListRequest>({
  namespace: text(1),
  type: text(2),
  options: nested(
    3,
    message<QueryOptions>({ labelQuery: repeated(nested(1, labelQueryCodec)), idQuery: optional(nested(2, idQueryCodec)) }),
  ),
});

export interface CreateRequest {
  readonly resource?: WireResource;
  readonly options: { readonly owner: string };
}
const ownerOptionsCodec = message<{ readonly owner: string }>({ owner: text(1) });
export const createRequestCodec: Codec<CreateRequest> = message<CreateRequest>({
  resource: optional(nested(1, resourceCodec)),
  options: nested(2, ownerOptionsCodec),
});

export interface UpdateRequest {
  readonly newResource?: WireResource;
  readonly options: { readonly owner: string; readonly expectedPhase?: string };
}
export const updateRequestCodec: Codec<UpdateRequest> = message<UpdateRequest>({
  newResource: optional(nested(2, resourceCodec)),
  options: nested(3, message<UpdateRequest['options']>({ owner: text(1), expectedPhase: optional(text(2)) })),
});

/** DestroyRequest, TeardownRequest and TeardownAndDestroyRequest have one form. */
export interface OwnedPointerRequest extends WirePointer {
  /** `uid`: of a teardown, only this incarnation. */
  readonly options: { readonly owner: string; readonly uid?: string };
}
export const ownedPointerRequestCodec: Codec<OwnedPointerRequest> = message<OwnedPointerRequest>({
  ...pointerFields,
  options: nested(4, message<OwnedPointerRequest['options']>({ owner: text(1), uid: optional(text(1000)) })),
});

export type Empty = Readonly<Record<string, never>>;
export const emptyCodec: Codec<Empty> = message<Empty>({});

export interface TeardownResponse {
  readonly destroyReady: boolean;
}
export const teardownResponseCodec: Codec<TeardownResponse> = message({ destroyReady: boolean(1) });

export interface WireWatchOptions extends QueryOptions {
  readonly bootstrapContents: boolean;
  readonly tailEvents: number;
  readonly aggregated: boolean;
  readonly startFromBookmark?: Uint8Array;
  readonly bootstrapBookmark: boolean;
  readonly strict: boolean;
  /** A watch that goes on from a bookmark is told, by a bare bookmark, when all that was there at its start was sent. */
  readonly caughtUp: boolean;
}
export const watchOptionsCodec: Codec<WireWatchOptions> = message<WireWatchOptions>({
  bootstrapContents: boolean(1),
  tailEvents: int32(2),
  labelQuery: repeated(nested(3, labelQueryCodec)),
  idQuery: optional(nested(4, idQueryCodec)),
  aggregated: boolean(5),
  startFromBookmark: optional(bytes(6)),
  bootstrapBookmark: boolean(7),
  strict: boolean(1000),
  caughtUp: boolean(1001),
});
export interface WatchRequest {
  readonly namespace: string;
  readonly type: string;
  readonly id?: string;
  readonly options: WireWatchOptions;
  readonly apiVersion: number;
}
export const watchRequestCodec: Codec<WatchRequest> = message<WatchRequest>({
  namespace: text(1),
  type: text(2),
  id: optional(text(3)),
  options: nested(4, watchOptionsCodec),
  apiVersion: int32(5),
});

export interface WatchResponse {
  readonly event: readonly WireEvent[];
}
export const watchResponseCodec: Codec<WatchResponse> = message({ event: repeated(nested(1, eventCodec)) });
