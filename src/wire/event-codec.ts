import type { Kind, SteadystateError } from '../resource/index.ts';
import { Bytes, SteadystateError as ErrorClass, isErrorCode } from '../resource/index.ts';
import type { StateEvent } from '../state/index.ts';
import type { Codec } from './codec.ts';
import { boolean, bytes, encode, encoded, int32, int64, message, optional, repeated, text } from './codec.ts';
import type { WireEvent } from './messages.ts';
import { wireEventTypes } from './messages.ts';
import type { ResourceCodec } from './resource-codec.ts';

/** The Event message with its resources as bytes already. */
interface EventParts {
  resource?: Uint8Array | undefined;
  readonly eventType: number;
  old?: Uint8Array | undefined;
  error?: string | undefined;
  readonly bookmark?: Uint8Array | undefined;
  readonly revision?: number | undefined;
  readonly resync: boolean;
  errorCode: string;
  errorNamespace: string;
  errorType: string;
}
const eventPartsCodec: Codec<EventParts> = message<EventParts>({
  resource: optional(encoded(1)),
  eventType: int32(2),
  old: optional(encoded(3)),
  error: optional(text(4)),
  bookmark: optional(bytes(5)),
  revision: optional(int64(1000)),
  resync: boolean(1001),
  errorCode: text(1002),
  errorNamespace: text(1003),
  errorType: text(1004),
});

/** Largest event that is sent with the old value; a larger one goes without it. */
const largestWithOld = 3_500_000;

/** An Event message as bytes. `kind` is what the watch is about: markers carry a placeholder of it. */
export function encodeEvent(event: StateEvent, kind: Kind, codec: ResourceCodec): Buffer {
  const known = codec.encodedEvents.get(event);
  if (known !== undefined) return known;
  const { bookmark, revision } = event;
  const parts: EventParts = {
    resource: undefined,
    eventType: wireEventTypes.indexOf(event.type === 'kindErrored' ? 'errored' : event.type),
    old: undefined,
    error: undefined,
    bookmark: bookmark?.toUint8Array(),
    revision,
    resync: event.resync ?? false,
    errorCode: '',
    errorNamespace: '',
    errorType: '',
  };
  switch (event.type) {
    case 'created':
    case 'destroyed':
      parts.resource = codec.encode(event.resource);
      break;
    case 'updated': {
      const resource = codec.encode(event.resource);
      const old = event.old && codec.encode(event.old);
      parts.resource = resource;
      if (old !== undefined && old.length + resource.length < largestWithOld) parts.old = old;
      break;
    }
    case 'kindErrored':
      parts.errorNamespace = event.kind.namespace;
      parts.errorType = event.kind.type;
      parts.error = event.error.message;
      parts.errorCode = event.error.code;
      break;
    case 'errored':
      parts.error = event.error.message;
      parts.errorCode = event.error.code;
      break;
    default:
      parts.resource = codec.encodePlaceholder(kind);
  }
  const encodedEvent = encode(eventPartsCodec, parts);
  // A marker's placeholder depends on the watch, and contents are made for each; what has a place in the history is the same for all.
  if (parts.resource !== undefined && bookmark !== undefined && event.type !== 'bootstrapped' && event.type !== 'noop')
    codec.encodedEvents.add(event, encodedEvent);
  return encodedEvent;
}

const encodedResponseCodec = message<{ readonly event: readonly Uint8Array[] }>({ event: repeated(encoded(1)) });

/** Events as one WatchResponse, as bytes. */
export function encodeWatchResponse(events: readonly Uint8Array[]): Buffer {
  return encode(encodedResponseCodec, { event: events });
}

/** An event from its message; `undefined` for a type that is not known, which must not be taken for another. `raw`: specs stay as they came. */
export function decodeEvent(wire: WireEvent, codec: ResourceCodec, raw = false): StateEvent | undefined {
  const event = readEvent(wire, codec, raw);
  return event && Object.freeze(event);
}

function readEvent(wire: WireEvent, codec: ResourceCodec, raw: boolean): StateEvent | undefined {
  const place = {
    ...(wire.revision !== undefined && { revision: wire.revision }),
    ...(wire.bookmark !== undefined && wire.bookmark.length > 0 && { bookmark: Bytes.from(wire.bookmark) }),
    ...(wire.resync && { resync: true }),
  };
  switch (wireEventTypes[wire.eventType]) {
    case 'created':
      return { type: 'created', resource: codec.read(wire.resource, raw), ...place };
    case 'updated':
      return { type: 'updated', resource: codec.read(wire.resource, raw), ...(wire.old && { old: codec.read(wire.old, raw) }), ...place };
    case 'destroyed':
      return { type: 'destroyed', resource: codec.readOrTombstone(wire.resource, raw), ...place };
    case 'bootstrapped':
      return { type: 'bootstrapped', ...place };
    case 'noop':
      return { type: 'noop', ...place };
    case 'errored': {
      const error = errorOf(wire);
      if (wire.errorType !== '')
        return { type: 'kindErrored', kind: { namespace: wire.errorNamespace, type: wire.errorType }, error, ...place };
      return { type: 'errored', error, ...place };
    }
    default:
      return undefined;
  }
}

function errorOf(wire: WireEvent): SteadystateError {
  return new ErrorClass(isErrorCode(wire.errorCode) ? wire.errorCode : 'Unavailable', wire.error ?? 'the watch failed');
}
