import type { JsonSchema, ReadyRule, ResourceDefinition, ResourceDefinitionOptions, SpecCodec } from './definition.ts';
import type { InvalidIssue } from './errors.ts';
import { SteadystateError } from './errors.ts';
import { assembleResource, makeMetadata, nameProblem } from './make-resource.ts';
import type { Pointer, Resource, ResourceInput, TypedKind } from './resource.ts';
import { schemaIssues } from './schema-issues.ts';
import type { StandardSchemaV1 } from './standard-schema.ts';
import { freezeSpec, invalid, isFrozenValue } from './values.ts';

/** Describes one type of resource. Throws Invalid when the description itself is wrong. */
export function defineResource<Schema extends StandardSchemaV1>(
  options: ResourceDefinitionOptions<Schema>,
): ResourceDefinition<StandardSchemaV1.InferOutput<Schema>, StandardSchemaV1.InferInput<Schema>> {
  type Spec = StandardSchemaV1.InferOutput<Schema>;
  type Input = StandardSchemaV1.InferInput<Schema>;
  const issues: InvalidIssue[] = [];
  const typeProblem = nameProblem(options.type);
  if (typeProblem !== undefined) issues.push({ path: 'type', message: typeProblem });
  else if (!/^[^.]+\..+$/.test(options.type))
    issues.push({ path: 'type', message: `expected <Kinds>.<group>, for example Stacks.host.example.com, found ${options.type}` });
  const defaultNamespace = options.defaultNamespace ?? 'default';
  const namespaceProblem = nameProblem(defaultNamespace);
  if (namespaceProblem !== undefined) issues.push({ path: 'defaultNamespace', message: namespaceProblem });
  if (typeof options.spec?.['~standard']?.validate !== 'function')
    issues.push({ path: 'spec', message: 'expected a Standard Schema (zod, valibot, arktype, …)' });
  if (issues.length > 0) throw invalid(issues);

  const plural = options.type.slice(0, options.type.indexOf('.'));
  // The schema's output per input value, so that what passed once is not checked again; both ends are frozen.
  const outputs = new WeakMap<object, Spec>();
  const views = new WeakMap<Resource, Resource<Spec>>();

  const validate = (spec: unknown, pointer?: Pointer): Spec => {
    const remembered = typeof spec === 'object' && spec !== null ? outputs.get(spec) : undefined;
    if (remembered !== undefined) return remembered;
    const output = freezeSpec(runSchema<Spec>(options.spec, spec, pointer), pointer);
    if (typeof spec === 'object' && spec !== null && isFrozenValue(spec)) outputs.set(spec, output);
    if (typeof output === 'object' && output !== null) outputs.set(output, output);
    return output;
  };

  return Object.freeze({
    type: options.type,
    displayType: singular(plural),
    defaultNamespace,
    aliases: Object.freeze([...(options.aliases ?? [])]),
    printColumns: Object.freeze([...(options.printColumns ?? [])]),
    sensitivity: options.sensitivity ?? 'nonSensitive',
    statusType: options.status?.type,
    jsonSchema: options.jsonSchema as JsonSchema | undefined,
    codec: options.codec as SpecCodec<Spec> | undefined,
    ready: options.ready as ReadyRule<Spec> | undefined,
    pointer: (id: string, namespace = defaultNamespace): Pointer<Spec> => ({ namespace, type: options.type, id }),
    kind: (namespace = defaultNamespace): TypedKind<Spec> => ({ namespace, type: options.type }),
    create(
      input: Omit<ResourceInput['metadata'], 'namespace' | 'type'> & { readonly namespace?: string; readonly spec: Input },
    ): Resource<Spec> {
      const { spec, namespace = defaultNamespace, ...rest } = input;
      const metadata = makeMetadata({ ...rest, namespace, type: options.type });
      return assembleResource(metadata, validate(spec, metadata));
    },
    validate,
    from(resource: Resource): Resource<Spec> {
      if (resource.metadata.type !== options.type) {
        throw invalid([{ path: 'metadata.type', message: `expected ${options.type}, found ${resource.metadata.type}` }], resource.metadata);
      }
      const known = views.get(resource);
      if (known !== undefined) return known;
      const spec = validate(resource.spec, resource.metadata);
      const view = spec === resource.spec ? (resource as Resource<Spec>) : assembleResource(makeMetadata(resource.metadata), spec);
      views.set(resource, view);
      return view;
    },
    is: (resource: { readonly metadata: { readonly type: string } }): boolean => resource.metadata.type === options.type,
  });
}

function runSchema<Spec>(schema: StandardSchemaV1, spec: unknown, pointer: Pointer | undefined): Spec {
  const result = schema['~standard'].validate(spec);
  if (typeof (result as PromiseLike<unknown>).then === 'function') {
    // Nobody waits for it, so its failure must not end the program.
    (result as Promise<unknown>).then(undefined, () => {});
    throw new SteadystateError(
      'Unsupported',
      'a resource definition needs a schema that validates synchronously; this one answered a promise',
      {
        ...(pointer && { pointer }),
      },
    );
  }
  const settled = result as StandardSchemaV1.Result<Spec>;
  if (settled.issues === undefined) return settled.value;
  throw invalid(schemaIssues(settled.issues, 'spec'), pointer);
}

/** The display name of a plural: `Stacks` → `Stack`, `Processes` → `Process`, `Databases` → `Database`, `Directories` → `Directory`. */
export function singular(plural: string): string {
  if (/ies$/i.test(plural)) return `${plural.slice(0, -3)}y`;
  // After a hissing sound the plural adds `es`; other words end in `e` themselves (Cache, Release, House).
  if (/(ss|x|zz|tch|nch|rch|sh|us)es$/i.test(plural) && !/(o|a)uses$/i.test(plural)) return plural.slice(0, -2);
  if (/(ss|us)$/i.test(plural) || !/s$/i.test(plural)) return plural;
  return plural.slice(0, -1);
}
