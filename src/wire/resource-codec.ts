import type { DefinitionRegistry, Kind, Metadata, Resource, SpecCodec, Tombstone } from '../resource/index.ts';
import { assembleResource, freezeSpec, invalid, makeMetadata, tombstone } from '../resource/index.ts';
import { encode } from './codec.ts';
import { EncodedCache } from './encoded-cache.ts';
import { foreignKey, fromForeign, isForeignSpec } from './foreign-spec.ts';
import type { WireMetadata, WireResource, WireSpec } from './messages.ts';
import { resourceCodec } from './messages.ts';
import { metaCodecs } from './meta-codecs.ts';
import { fromTimestamp, toTimestamp } from './timestamps.ts';
import { parseYamlValue } from './yaml-parse.ts';
import { compactYaml } from './yaml-stringify.ts';

const noBytes = new Uint8Array();
const emptySpec: WireSpec = { protoSpec: noBytes, yamlSpec: '' };

/** Turns resources into messages and back, with the codecs of the definitions that are known. */
export class ResourceCodec {
  readonly #registry: DefinitionRegistry | undefined;
  /** A frozen resource is encoded once for all who ask for it. */
  readonly #encodedResources = new EncodedCache<Buffer>(16 * 1024 * 1024);
  /** The same of events: one that many watchers share is encoded once. */
  readonly encodedEvents = new EncodedCache<Buffer>(16 * 1024 * 1024);
  /** The texts in which specs came, until they are sent for the first time: a write is answered, and told to watches, at once. */
  readonly #texts = new EncodedCache<string>(1024 * 1024);

  constructor(registry?: DefinitionRegistry) {
    this.#registry = registry;
  }

  toWire(resource: Resource | Tombstone): WireResource {
    return {
      metadata: metadataToWire(resource.metadata),
      spec: resource.spec === undefined ? emptySpec : this.#specToWire(resource.metadata.type, resource.spec),
    };
  }

  /** Whether a codec here makes the protobuf form of its spec, so that an empty one is its form and not none. */
  makesProtobuf({ metadata, spec }: Resource): boolean {
    return !isForeignSpec(spec) && this.#specCodec(metadata.type) !== undefined;
  }

  /** Whether it is sent with a protobuf form of its spec that is not empty. */
  hasProtobuf(resource: Resource): boolean {
    const { spec } = resource;
    if (isForeignSpec(spec)) return spec[foreignKey].proto.length > 0;
    return this.makesProtobuf(resource) && this.#specToWire(resource.metadata.type, spec).protoSpec.length > 0;
  }

  /** A Resource message as bytes. */
  encode(resource: Resource | Tombstone): Buffer {
    let bytes = this.#encodedResources.get(resource);
    if (bytes === undefined) {
      bytes = encode(resourceCodec, this.toWire(resource));
      this.#encodedResources.add(resource, bytes);
    }
    return bytes;
  }

  /** What stands for a kind where a message must have a resource. Not kept: each watch would leave one behind. */
  encodePlaceholder({ namespace, type }: Kind): Buffer {
    return encode(resourceCodec, this.toWire(tombstone({ namespace, type, id: '' })));
  }

  /** A checked resource of a request. Throws Invalid for what cannot be one. */
  fromWire(wire: WireResource | undefined): Resource {
    return this.#fromWire(wire, (metadata, spec) => this.#specFromWire(metadata, spec));
  }

  /**
   * A resource of an answer. With `raw` its spec is not decoded; nor is one that cannot be: it keeps the forms in which it came,
   * and the definition of its type tells what is wrong with it.
   */
  read(wire: WireResource | undefined, raw = false): Resource {
    return this.#fromWire(wire, (metadata, spec) => {
      if (raw) return fromForeign(spec.protoSpec, spec.yamlSpec);
      try {
        return this.#specFromWire(metadata, spec);
      } catch {
        return fromForeign(spec.protoSpec, spec.yamlSpec);
      }
    });
  }

  /** What an event carries: a resource, or a tombstone when its spec is empty. */
  readOrTombstone(wire: WireResource | undefined, raw = false): Resource | Tombstone {
    const spec = wire?.spec;
    if (wire?.metadata === undefined) throw invalid([{ path: 'metadata', message: 'a resource needs metadata' }]);
    if (spec === undefined || (spec.protoSpec.length === 0 && spec.yamlSpec === '' && wire.metadata.version === 'undefined'))
      return tombstone(wire.metadata);
    return this.read(wire, raw);
  }

  #fromWire(wire: WireResource | undefined, specOf: (metadata: Metadata, spec: WireSpec) => unknown): Resource {
    if (wire?.metadata === undefined) throw invalid([{ path: 'metadata', message: 'a resource needs metadata' }]);
    if (wire.spec === undefined) throw invalid([{ path: 'spec', message: 'a resource needs a spec, even an empty one' }]);
    const metadata = metadataFromWire(wire.metadata);
    return assembleResource(metadata, specOf(metadata, wire.spec));
  }

  #specToWire(type: string, spec: unknown): WireSpec {
    if (isForeignSpec(spec)) {
      const { proto, yaml } = spec[foreignKey];
      return { protoSpec: proto.toUint8Array(), yamlSpec: yaml };
    }
    const known = typeof spec === 'object' && spec !== null ? this.#texts.get(spec) : undefined;
    return { protoSpec: this.#specCodec(type)?.encode(spec) ?? noBytes, yamlSpec: known ?? compactYaml(spec) };
  }

  #specFromWire(metadata: Metadata, { protoSpec, yamlSpec }: WireSpec): unknown {
    const codec = this.#specCodec(metadata.type);
    // What has neither form is an empty message.
    if (codec !== undefined && (protoSpec.length > 0 || yamlSpec === ''))
      return freezeSpec(decodeSpec(codec, protoSpec, metadata), metadata);
    // Without a codec here, a protobuf form is somebody else's to read: both forms are kept as they are.
    if (protoSpec.length > 0 || this.#registry?.get(metadata.type) === undefined) {
      const spec = fromForeign(protoSpec, yamlSpec);
      // What has no other form than its text: that text is the compact one.
      if (typeof spec === 'object' && spec !== null && !isForeignSpec(spec)) this.#texts.add(spec, yamlSpec);
      return spec;
    }
    return freezeSpec(readSpec(yamlSpec), metadata);
  }

  #specCodec(type: string): SpecCodec<unknown> | undefined {
    return this.#registry?.get(type)?.codec ?? metaCodecs.get(type);
  }
}

function decodeSpec(codec: SpecCodec<unknown>, protoSpec: Uint8Array, metadata: Metadata): unknown {
  try {
    return codec.decode(protoSpec);
  } catch (error) {
    const message = `its protobuf form cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    throw invalid([{ path: 'spec', message }], metadata);
  }
}

/** A spec from its text: JSON by the quick way where that is exact, else by the YAML reader. */
function readSpec(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // JSON.parse rounds numbers and drops duplicate keys silently; what it read exactly gives the same text again.
    if (compactYaml(value) === text) return value;
  } catch {
    // Not JSON, or not what it seems: the YAML reader tells what is wrong.
  }
  return parseYamlValue(text);
}

function metadataToWire(metadata: Metadata): WireMetadata {
  const { namespace, type, id, version, owner, phase, finalizers, labels, annotations, uid } = metadata;
  return {
    namespace,
    type,
    id,
    version,
    owner,
    phase,
    finalizers,
    labels,
    annotations,
    uid,
    created: toTimestamp(metadata.created),
    updated: toTimestamp(metadata.updated),
  };
}

function metadataFromWire(wire: WireMetadata): Metadata {
  const { namespace, type, id, version, owner, phase, finalizers, labels, annotations, uid } = wire;
  if (phase !== 'running' && phase !== 'tearingDown')
    throw invalid([{ path: 'metadata.phase', message: `expected running or tearingDown, found ${JSON.stringify(phase)}` }]);
  if (version !== 'undefined' && !isUint64(version))
    throw invalid([{ path: 'metadata.version', message: `expected a decimal number or undefined, found ${JSON.stringify(version)}` }]);
  return makeMetadata({
    namespace,
    type,
    id,
    version,
    owner,
    phase,
    finalizers,
    labels,
    annotations,
    uid,
    created: fromTimestamp(wire.created),
    updated: fromTimestamp(wire.updated),
  });
}

function isUint64(text: string): boolean {
  return /^[0-9]{1,20}$/.test(text) && (text.length < 20 || BigInt(text) < 2n ** 64n);
}
