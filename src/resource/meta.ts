import { defineResource } from './define-resource.ts';
import type { ResourceDefinition } from './definition.ts';
import { allNames } from './definition-registry.ts';
import type { Resource } from './resource.ts';
import type { StandardSchemaV1 } from './standard-schema.ts';

/** The namespace of the well-known kinds: what types and namespaces there are. */
export const metaNamespace = 'meta';

/** The spec of a resource that describes one type, so that clients find types, aliases, columns and sensitivity. */
export interface ResourceDefinitionSpec {
  readonly resourceType: string;
  readonly displayType: string;
  readonly defaultNamespace: string;
  readonly aliases: readonly string[];
  readonly allAliases: readonly string[];
  readonly printColumns: readonly { readonly name: string; readonly jsonPath: string }[];
  readonly sensitivity: '' | 'sensitive';
  /** Ours: the type of the companion that holds the status; empty: none. */
  readonly statusType?: string;
  /** Ours: whether readiness of this type is known (a `ready` rule or a status). */
  readonly hasReadiness?: boolean;
}

export interface NamespaceSpec {
  readonly description: string;
}

/** A schema that checks the fields that it names and leaves the rest. */
function fields<Spec>(
  expected: Readonly<Record<string, 'string' | 'list' | 'boolean'>>,
  optional: readonly string[] = [],
): StandardSchemaV1<Spec, Spec> {
  return {
    '~standard': {
      version: 1,
      vendor: 'steadystate',
      validate(value) {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return { issues: [{ message: 'expected a map' }] };
        const issues: StandardSchemaV1.Issue[] = [];
        for (const [key, type] of Object.entries(expected)) {
          const found = (value as Record<string, unknown>)[key];
          if (found === undefined && optional.includes(key)) continue;
          const fits = type === 'list' ? Array.isArray(found) : typeof found === type;
          if (!fits) issues.push({ message: `expected a ${type}`, path: [key] });
        }
        return issues.length > 0 ? { issues } : { value: value as Spec };
      },
    },
  };
}

/** The kind that describes types. Its ids are types in lower case. */
export const resourceDefinitionDefinition: ResourceDefinition<ResourceDefinitionSpec> = defineResource({
  type: 'ResourceDefinitions.meta.cosi.dev',
  defaultNamespace: metaNamespace,
  aliases: ['api-resources', 'rd', 'rds'],
  spec: fields<ResourceDefinitionSpec>(
    {
      resourceType: 'string',
      displayType: 'string',
      defaultNamespace: 'string',
      aliases: 'list',
      allAliases: 'list',
      printColumns: 'list',
      sensitivity: 'string',
      statusType: 'string',
      hasReadiness: 'boolean',
    },
    ['statusType', 'hasReadiness'],
  ),
  printColumns: [
    { name: 'DISPLAY', jsonPath: '{.spec.displayType}' },
    { name: 'NAMESPACE', jsonPath: '{.spec.defaultNamespace}' },
    { name: 'ALIASES', jsonPath: '{.spec.aliases}' },
  ],
});

/** The kind that describes namespaces. Its ids are their names. */
export const namespaceDefinition: ResourceDefinition<NamespaceSpec> = defineResource({
  type: 'Namespaces.meta.cosi.dev',
  defaultNamespace: metaNamespace,
  aliases: ['ns'],
  spec: fields<NamespaceSpec>({ description: 'string' }),
  printColumns: [{ name: 'DESCRIPTION', jsonPath: '{.spec.description}' }],
});

/** The resource that describes a definition. */
export function describeDefinition<Spec, Input>(definition: ResourceDefinition<Spec, Input>): Resource<ResourceDefinitionSpec> {
  const plain = definition as unknown as ResourceDefinition;
  return resourceDefinitionDefinition.create({
    id: plain.type.toLowerCase(),
    spec: {
      resourceType: plain.type,
      displayType: plain.displayType,
      defaultNamespace: plain.defaultNamespace,
      aliases: [...plain.aliases],
      allAliases: [...allNames(plain)],
      printColumns: plain.printColumns.map(({ name, jsonPath }) => ({ name, jsonPath })),
      sensitivity: plain.sensitivity === 'sensitive' ? 'sensitive' : '',
      statusType: plain.statusType ?? '',
      hasReadiness: plain.ready !== undefined || plain.statusType !== undefined,
    },
  });
}
