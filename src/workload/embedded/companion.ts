import type { AnyResourceDefinition, Resource, ResourceDefinition, StandardSchemaV1 } from '../../resource/index.ts';
import { defineResource, digest } from '../../resource/index.ts';
import type { WorkloadStatus } from '../port.ts';

/** The spec of the companion that holds a workload's status. */
export interface CompanionSpec extends WorkloadStatus {
  /** Counts changes of spec and phase. */
  readonly generation: number;
  /** Digest of spec and phase at that generation. */
  readonly specDigest: string;
  /** The incarnation of the workload. */
  readonly workloadUid: string;
}

/** Only the workload's controller writes these, so the schema takes what it is given. */
const anySpec: StandardSchemaV1<CompanionSpec, CompanionSpec> = {
  '~standard': { version: 1, vendor: 'steadystate', validate: (value) => ({ value: value as CompanionSpec }) },
};

/** The definition of the companion of a kind of workload. */
export function statusDefinition(workload: AnyResourceDefinition): ResourceDefinition<CompanionSpec> {
  return defineResource({
    type: workload.statusType ?? `${workload.displayType}Statuses.${workload.type.slice(workload.type.indexOf('.') + 1)}`,
    defaultNamespace: workload.defaultNamespace,
    spec: anySpec,
    printColumns: [
      { name: 'READY', jsonPath: '{.spec.conditions[?(@.type=="Ready")].status}' },
      { name: 'REASON', jsonPath: '{.spec.conditions[?(@.type=="Ready")].reason}' },
    ],
  });
}

/** Digest of what counts as a workload's generation. */
export function generationDigest(workload: Resource): string {
  return digest([digest(workload.spec), workload.metadata.phase]);
}

/** The spec of a companion; `undefined` when there is none, or when what is there has not its form. */
export function readCompanion(companion: Resource | undefined): CompanionSpec | undefined {
  const spec = companion?.spec as Partial<CompanionSpec> | undefined;
  return spec !== undefined && Array.isArray(spec.children) && Array.isArray(spec.conditions) ? (spec as CompanionSpec) : undefined;
}
