import type { Pointer, Resource, TypedKind } from './resource.ts';
import type { StandardSchemaV1 } from './standard-schema.ts';

/** JSON Schema, as far as it is passed on. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A column of a table: `jsonPath` (kubectl's dialect) over the resource joined with its status companion as `.status`. */
export interface PrintColumn {
  readonly name: string;
  readonly jsonPath: string;
}

/** How a type's specs travel as protobuf; YAML travels always. */
export interface SpecCodec<Spec> {
  encode(spec: Spec): Uint8Array;
  decode(bytes: Uint8Array): Spec;
}

/** What `ready` answers for one resource (readiness.md's words). */
export interface Readiness {
  readonly status: 'Current' | 'InProgress' | 'Failed' | 'Terminating' | 'NotFound';
  readonly reason: string;
  readonly message: string;
  /** When to look again although nothing changed, milliseconds. */
  readonly recheckAfterMs?: number;
}

export interface ResourceDefinitionOptions<Schema extends StandardSchemaV1> {
  /** `<Kinds>.<group>`, for example `Stacks.host.steadystate.dev`. */
  readonly type: string;
  /** @default 'default' */
  readonly defaultNamespace?: string;
  /** Other names on the command line; the singular and the plural of `<Kinds>` are known without. */
  readonly aliases?: readonly string[];
  /** A synchronous Standard Schema. Its output is what is stored. */
  readonly spec: Schema;
  /** Needed for a schema library that cannot give it by itself. */
  readonly jsonSchema?: JsonSchema;
  /** The type of the companion that holds this type's status (same namespace and id). */
  readonly status?: { readonly type: string };
  /** Whether one resource, given its companion's spec if there is one, is ready. */
  readonly ready?: (resource: Resource<StandardSchemaV1.InferOutput<Schema>>, status: unknown) => boolean | Readiness;
  readonly printColumns?: readonly PrintColumn[];
  /** `sensitive`: values are masked in every output. @default 'nonSensitive' */
  readonly sensitivity?: 'nonSensitive' | 'sensitive';
  readonly codec?: SpecCodec<StandardSchemaV1.InferOutput<Schema>>;
}

/** Whether one resource, given its companion's spec if there is one, is ready. */
export type ReadyRule<Spec> = {
  // A method, so that a rule for one spec can stand in a list of definitions.
  check(resource: Resource<Spec>, status: unknown): boolean | Readiness;
}['check'];

/** Any definition: what lists and registries hold. */
export type AnyResourceDefinition = ResourceDefinition<unknown, unknown>;

/** One type of resource: constructors, validation, and what clients need to show it. Made by `defineResource`. */
export interface ResourceDefinition<Spec = unknown, Input = Spec> {
  readonly type: string;
  readonly displayType: string;
  readonly defaultNamespace: string;
  readonly aliases: readonly string[];
  readonly printColumns: readonly PrintColumn[];
  readonly sensitivity: 'nonSensitive' | 'sensitive';
  readonly statusType: string | undefined;
  readonly jsonSchema: JsonSchema | undefined;
  readonly codec: SpecCodec<Spec> | undefined;
  readonly ready: ReadyRule<Spec> | undefined;
  pointer(id: string, namespace?: string): Pointer<Spec>;
  kind(namespace?: string): TypedKind<Spec>;
  /** A new resource, validated and frozen. Throws Invalid naming each path. */
  create(input: {
    readonly id: string;
    readonly spec: Input;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  }): Resource<Spec>;
  /** Validates a spec and answers the schema's output, frozen. Throws Invalid. Remembered per frozen value. */
  validate(spec: unknown, pointer?: Pointer): Spec;
  /** The typed view of a stored resource; throws Invalid with the pointer when it does not fit. Remembered per frozen value. */
  from(resource: Resource): Resource<Spec>;
  /** Whether the resource is of this type. */
  is(resource: { readonly metadata: { readonly type: string } }): boolean;
}
