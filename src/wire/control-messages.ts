import type { FinalizerNote } from '../state/index.ts';
import type { Codec } from './codec.ts';
import { boolean, int64, message, nested, optional, repeated, text } from './codec.ts';
import type { CreateRequest, OwnedPointerRequest, UpdateRequest, WirePointer, WireResource, WireWatchOptions } from './messages.ts';
import { createRequestCodec, ownedPointerRequestCodec, resourceCodec, updateRequestCodec, watchOptionsCodec } from './messages.ts';

/** The messages of our own service, `steadystate.v1.Control`: what the eight calls cannot say. */

export interface InfoResponse {
  readonly version: string;
  readonly pid: number;
  readonly storeId: string;
  /** Names of the capabilities that the store has. */
  readonly capabilities: readonly string[];
  readonly revision: number;
  /** The store's URL, for people. */
  readonly store: string;
}
export const infoResponseCodec: Codec<InfoResponse> = message<InfoResponse>({
  version: text(1),
  pid: int64(2),
  storeId: text(3),
  capabilities: repeated(text(4)),
  revision: int64(5),
  store: text(6),
});

export interface ValidateRequest {
  readonly resource: readonly WireResource[];
}
export const validateRequestCodec: Codec<ValidateRequest> = message({ resource: repeated(nested(1, resourceCodec)) });

export interface WireProblem {
  /** Which of the resources. */
  readonly index: number;
  readonly path: string;
  readonly message: string;
  readonly code: string;
}
export interface ValidateResponse {
  readonly problem: readonly WireProblem[];
  /** The resources as they would be stored, where nothing is wrong with them. */
  readonly resource: readonly WireResource[];
}
export const validateResponseCodec: Codec<ValidateResponse> = message<ValidateResponse>({
  problem: repeated(nested(1, message<WireProblem>({ index: int64(1), path: text(2), message: text(3), code: text(4) }))),
  resource: repeated(nested(2, resourceCodec)),
});

export interface ReadinessResponse {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** The version of the resource that this is about; empty: it does not exist. */
  readonly version: string;
  /** Whether its type can tell at all. */
  readonly known: string;
}
export const readinessResponseCodec: Codec<ReadinessResponse> = message<ReadinessResponse>({
  status: text(1),
  reason: text(2),
  message: text(3),
  version: text(4),
  known: text(5),
});

/** What the controllers say of one resource. */
export interface ControllerNote {
  readonly controller: string;
  readonly lastError: string;
  readonly failures: number;
  readonly failingSince: string;
  readonly nextRunInMs: number;
  readonly running: string;
  /** What it waits for, where it did not fail. */
  readonly blockedBecause: string;
  /** Since when that is so. */
  readonly blockedSince: string;
}
export interface NotesResponse {
  readonly note: readonly ControllerNote[];
}
export const notesResponseCodec: Codec<NotesResponse> = message({
  note: repeated(
    nested(
      1,
      message<ControllerNote>({
        controller: text(1),
        lastError: text(2),
        failures: int64(3),
        failingSince: text(4),
        nextRunInMs: int64(5),
        running: text(6),
        blockedBecause: text(7),
        blockedSince: text(8),
      }),
    ),
  ),
});

/** Who holds a resource: a note for each of its finalizers. */
export interface FinalizersResponse {
  readonly note: readonly FinalizerNote[];
}
export const finalizersResponseCodec: Codec<FinalizersResponse> = message({
  note: repeated(nested(1, message<FinalizerNote>({ finalizer: text(1), since: text(2), actor: text(3) }))),
});

export interface WaitForRevisionRequest {
  readonly revision: number;
}
export const waitForRevisionRequestCodec: Codec<WaitForRevisionRequest> = message({ revision: int64(1) });

export interface DestroyIncarnationRequest extends WirePointer {
  readonly owner: string;
  readonly uid: string;
}
export const destroyIncarnationRequestCodec: Codec<DestroyIncarnationRequest> = message<DestroyIncarnationRequest>({
  namespace: text(1),
  type: text(2),
  id: text(3),
  owner: text(4),
  uid: text(5),
});

export interface ReleaseFinalizerRequest extends WirePointer {
  readonly finalizer: string;
  /** Only this incarnation; empty: the one that is there. */
  readonly uid: string;
  /** Who asks, as they tell it. */
  readonly by: string;
}
export const releaseFinalizerRequestCodec: Codec<ReleaseFinalizerRequest> = message<ReleaseFinalizerRequest>({
  namespace: text(1),
  type: text(2),
  id: text(3),
  finalizer: text(4),
  uid: text(5),
  by: text(6),
});
export interface ReleaseFinalizerResponse {
  /** The id of the recorded event, in the namespace of the resource. */
  readonly record: string;
  /** What is known of the holder. */
  readonly holder: string;
}
export const releaseFinalizerResponseCodec: Codec<ReleaseFinalizerResponse> = message({ record: text(1), holder: text(2) });

export interface WireKind {
  readonly namespace: string;
  readonly type: string;
}
export interface WatchKindsRequest {
  readonly kind: readonly WireKind[];
  readonly options: WireWatchOptions;
}
export const watchKindsRequestCodec: Codec<WatchKindsRequest> = message<WatchKindsRequest>({
  kind: repeated(nested(1, message<WireKind>({ namespace: text(1), type: text(2) }))),
  options: nested(2, watchOptionsCodec),
});

export interface WatchNamespacesRequest {
  readonly type: string;
}
export const watchNamespacesRequestCodec: Codec<WatchNamespacesRequest> = message({ type: text(1) });

export interface GraphResponse {
  /** JSON of the controllers' graph. */
  readonly json: string;
}
export const graphResponseCodec: Codec<GraphResponse> = message({ json: text(1) });

export interface StoreCheckRequest {
  readonly quick: boolean;
}
export const storeCheckRequestCodec: Codec<StoreCheckRequest> = message({ quick: boolean(1) });

export interface StoreCompactRequest {
  readonly keep?: number;
  readonly olderThanMs?: number;
}
export const storeCompactRequestCodec: Codec<StoreCompactRequest> = message<StoreCompactRequest>({
  keep: optional(int64(1)),
  olderThanMs: optional(int64(2)),
});

export interface StoreBackupRequest {
  readonly file: string;
  readonly force: boolean;
}
export const storeBackupRequestCodec: Codec<StoreBackupRequest> = message<StoreBackupRequest>({ file: text(1), force: boolean(2) });

export interface StoreTaskResponse {
  readonly step: string;
  readonly done: number;
  readonly total: number;
  /** JSON of the result, in the last message only. */
  readonly result: string;
}
export const storeTaskResponseCodec: Codec<StoreTaskResponse> = message<StoreTaskResponse>({
  step: text(1),
  done: int64(2),
  total: int64(3),
  result: text(4),
});

/** A lease, and who must hold it at the moment of a write. */
export interface Fence extends WirePointer {
  readonly holder: string;
  /** The holder's term: a later one has taken over. */
  readonly term: number;
}
/** Exactly one of the writes. */
export interface FencedWriteRequest {
  readonly fence?: Fence;
  readonly create?: CreateRequest;
  readonly update?: UpdateRequest;
  readonly destroy?: OwnedPointerRequest;
}
export const fencedWriteRequestCodec: Codec<FencedWriteRequest> = message<FencedWriteRequest>({
  fence: optional(nested(1, message<Fence>({ namespace: text(1), type: text(2), id: text(3), holder: text(4), term: int64(5) }))),
  create: optional(nested(2, createRequestCodec)),
  update: optional(nested(3, updateRequestCodec)),
  destroy: optional(nested(4, ownedPointerRequestCodec)),
});

/** FencedWriteResponse has the form of the other answers: the resource that is stored now; none after a destroy. */
export { resourceAnswerCodec as fencedWriteResponseCodec } from './messages.ts';
