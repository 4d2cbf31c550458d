import type { NamespaceSpec, ResourceDefinitionSpec, SpecCodec } from '../resource/index.ts';
import { namespaceDefinition, resourceDefinitionDefinition } from '../resource/index.ts';
import type { Codec } from './codec.ts';
import { decode, encode, int32, message, nested, repeated, text } from './codec.ts';

/** The protobuf forms of the well-known kinds, so that foreign tools resolve the names of types and namespaces. */

interface WireDefinition {
  readonly resourceType: string;
  readonly displayType: string;
  readonly defaultNamespace: string;
  readonly aliases: readonly string[];
  readonly allAliases: readonly string[];
  readonly printColumns: readonly { readonly name: string; readonly jsonPath: string }[];
  readonly sensitivity: number;
  /** Ours. */
  readonly statusType: string;
  readonly hasReadiness: number;
}
const definitionCodec: Codec<WireDefinition> = message<WireDefinition>({
  resourceType: text(1),
  displayType: text(2),
  defaultNamespace: text(3),
  aliases: repeated(text(4)),
  allAliases: repeated(text(5)),
  printColumns: repeated(nested(6, message<WireDefinition['printColumns'][number]>({ name: text(1), jsonPath: text(2) }))),
  sensitivity: int32(7),
  statusType: text(1000),
  hasReadiness: int32(1001),
});

const definitionSpecCodec: SpecCodec<ResourceDefinitionSpec> = {
  encode: (spec) =>
    encode(definitionCodec, {
      ...spec,
      sensitivity: spec.sensitivity === 'sensitive' ? 1 : 0,
      statusType: spec.statusType ?? '',
      hasReadiness: spec.hasReadiness === true ? 1 : 0,
    }),
  decode(bytes) {
    const { sensitivity, hasReadiness, ...spec } = decode(definitionCodec, bytes);
    return { ...spec, sensitivity: sensitivity === 1 ? 'sensitive' : '', hasReadiness: hasReadiness === 1 };
  },
};

const namespaceCodec: Codec<NamespaceSpec> = message<NamespaceSpec>({ description: text(1) });
const namespaceSpecCodec: SpecCodec<NamespaceSpec> = {
  encode: (spec) => encode(namespaceCodec, spec),
  decode: (bytes) => decode(namespaceCodec, bytes),
};

export const metaCodecs: ReadonlyMap<string, SpecCodec<unknown>> = new Map<string, SpecCodec<unknown>>([
  [resourceDefinitionDefinition.type, definitionSpecCodec as SpecCodec<unknown>],
  [namespaceDefinition.type, namespaceSpecCodec as SpecCodec<unknown>],
]);
