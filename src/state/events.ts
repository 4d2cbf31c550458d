import type { Kind, Resource, SteadystateError, Tombstone } from '../resource/index.ts';
import type { Bookmark } from './options.ts';

interface EventPosition {
  /** The revision of the commit; absent where the backend has no common revision. */
  readonly revision?: number;
  /** Present where it is safe to resume from; never before `bootstrapped`. */
  readonly bookmark?: Bookmark;
  /** The watcher lagged (or its history was gone): this is a step of catching up, with changes between left out. */
  readonly resync?: boolean;
}

export interface CreatedEvent<Spec = unknown> extends EventPosition {
  readonly type: 'created';
  readonly resource: Resource<Spec>;
}
export interface UpdatedEvent<Spec = unknown> extends EventPosition {
  readonly type: 'updated';
  readonly resource: Resource<Spec>;
  /** The value before; absent only where the backend could not keep it. */
  readonly old?: Resource<Spec>;
}
export interface DestroyedEvent<Spec = unknown> extends EventPosition {
  readonly type: 'destroyed';
  /** The last value; a tombstone when the resource was not there at the start of a watch. */
  readonly resource: Resource<Spec> | Tombstone;
}
/** All present contents have been given. */
export interface BootstrappedEvent extends EventPosition {
  readonly type: 'bootstrapped';
}
/** Nothing changed; carries a bookmark. */
export interface NoopEvent extends EventPosition {
  readonly type: 'noop';
}
/** The last event of a watch that failed. */
export interface ErroredEvent extends EventPosition {
  readonly type: 'errored';
  readonly error: SteadystateError;
}
/** One kind of a watch over several kinds is denied or unknown; the others go on. */
export interface KindErroredEvent extends EventPosition {
  readonly type: 'kindErrored';
  readonly kind: Kind;
  readonly error: SteadystateError;
}

export type StateEvent<Spec = unknown> =
  | CreatedEvent<Spec>
  | UpdatedEvent<Spec>
  | DestroyedEvent<Spec>
  | BootstrappedEvent
  | NoopEvent
  | ErroredEvent
  | KindErroredEvent;

export type EventType = StateEvent['type'];
