import type { Logger } from '../environment/index.ts';
import type { AnyResourceDefinition, ResourceDefinition } from '../resource/index.ts';
import type { Desired, GroupKind, Live } from './port.ts';
import type { Registry } from './registry.ts';
import { createRegistry, registerDefaultPhases, withResourceOptions } from './registry.ts';
import type { Dependency, ReadyAnswer, ReconcileRequest } from './types.ts';
import { validateWorkload } from './validate.ts';

/** What a workload's own code sees of one reconcile. */
export interface WorkloadRequest<Spec> {
  readonly signal: AbortSignal;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly spec: Spec;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What this workload keeps in its status for itself; what is put there is written with the status. */
  readonly extra: Record<string, unknown>;
  /** The collection that the workload belongs to, in `getResources`, `mutate` and `checkReady`; only with `collection`. */
  readonly collection: Live | undefined;
  readonly log: Logger;
  /** The whole request, for phases of one's own. */
  readonly request: ReconcileRequest;
}

/** A kind that several workloads (its components) share settings with. */
export interface WorkloadCollection<Spec> {
  readonly definition: AnyResourceDefinition;
  /** Which one this workload belongs to. @default the only one that there is */
  find?(request: WorkloadRequest<Spec>): { readonly name: string; readonly namespace?: string } | undefined;
}

export interface WorkloadOptions<Spec, Input> {
  /** The kind that people write; its `status.type` names the companion. */
  readonly definition: ResourceDefinition<Spec, Input>;
  /** Every kind of child that there can be. */
  readonly children: readonly AnyResourceDefinition[];
  /**
   * Types of children that earlier versions made. None is made any more; those that there still are can be removed for as long
   * as a type stands here.
   */
  readonly retiredChildren?: readonly string[];
  /** Computes the children; called once per reconcile. */
  getResources(request: WorkloadRequest<Spec>): readonly Desired[] | Promise<readonly Desired[]>;
  /** Turns one child into the children that stand for it; called once per child. */
  mutate?(child: Desired, request: WorkloadRequest<Spec>): readonly Desired[] | Promise<readonly Desired[]>;
  /** Beyond the readiness of all children. @default ready */
  checkReady?(request: WorkloadRequest<Spec>): boolean | ReadyAnswer | Promise<boolean | ReadyAnswer>;
  /** What must be ready first. Its kinds are to be named in `dependencyKinds`. */
  dependencies?(request: WorkloadRequest<Spec>): readonly Dependency[];
  readonly dependencyKinds?: readonly AnyResourceDefinition[];
  readonly collection?: WorkloadCollection<Spec>;
  /** @default the default phases, with children that wait for those before them */
  readonly phases?: Registry;
  /** A completed workload is looked at again after this long, milliseconds; absent: only when something changes. */
  readonly resyncMs?: number;
  /** Limit of one call of the functions above, milliseconds. @default 30_000 */
  readonly deadlineMs?: number;
}

/** What an author writes of one kind of workload. */
export interface WorkloadDefinition<Spec = unknown, Input = Spec> extends WorkloadOptions<Spec, Input> {
  readonly kind: GroupKind;
  /** The type of the companion that holds the status. */
  readonly statusType: string;
  readonly phases: Registry;
  readonly deadlineMs: number;
}

/** Checks and completes what an author wrote. Invalid names what is wrong. */
export function defineWorkload<Spec, Input>(options: WorkloadOptions<Spec, Input>): WorkloadDefinition<Spec, Input> {
  validateWorkload(options);
  return Object.freeze({
    ...options,
    kind: kindOfType(options.definition.type),
    statusType: options.definition.statusType as string,
    phases: options.phases ?? registerDefaultPhases(createRegistry(), { createResources: [withResourceOptions('withWait')] }),
    deadlineMs: options.deadlineMs ?? 30_000,
  });
}

/** `<Kinds>.<group>` → group and kind. */
export function kindOfType(type: string): GroupKind {
  const dot = type.indexOf('.');
  return { kind: type.slice(0, dot), group: type.slice(dot + 1) };
}

/** Group and kind → `<Kinds>.<group>`. */
export function typeOfKind(kind: GroupKind): string {
  return `${kind.kind}.${kind.group}`;
}

/** A child from a resource that a definition made. */
export function desiredChild(
  resource: {
    readonly metadata: {
      readonly namespace: string;
      readonly type: string;
      readonly id: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly annotations: Readonly<Record<string, string>>;
    };
    readonly spec: unknown;
  },
  more: Pick<Desired, 'name' | 'dependsOn' | 'options'> = {},
): Desired {
  const { namespace, type, id, labels, annotations } = resource.metadata;
  return { ref: { ...kindOfType(type), version: '', namespace, name: id }, labels, annotations, body: resource.spec, ...more };
}
