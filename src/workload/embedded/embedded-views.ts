import type { Resource } from '../../resource/index.ts';
import { kindOfType } from '../define-workload.ts';
import type { Live, WorkloadKey, WorkloadStatus, WorkloadView } from '../port.ts';
import type { CompanionSpec } from './companion.ts';
import { generationDigest, readCompanion } from './companion.ts';

/** What the port keeps of a view for the writes that follow. */
export interface Handle {
  readonly workload: Resource;
  readonly companion: Resource | undefined;
}

/** A resource of the store as the engine sees an object. */
export function describe({ metadata, spec }: Resource, companion: Resource | undefined, ready: Live['ready']): Live {
  return Object.freeze({
    ref: { ...kindOfType(metadata.type), version: '', namespace: metadata.namespace, name: metadata.id },
    uid: metadata.uid,
    version: metadata.version,
    generation: undefined,
    deleting: metadata.phase === 'tearingDown',
    finalizers: metadata.finalizers,
    labels: metadata.labels,
    annotations: metadata.annotations,
    owner: metadata.owner,
    body: spec,
    status: companion?.spec,
    ...(ready && { ready }),
  });
}

/** A workload and its companion as one view. */
export function viewOf(key: WorkloadKey, handle: Handle): WorkloadView {
  const { metadata, spec } = handle.workload;
  const companion = readCompanion(handle.companion);
  const same = companion?.workloadUid === metadata.uid;
  return Object.freeze({
    key,
    uid: metadata.uid,
    version: metadata.version,
    generation: same ? companion.generation + (companion.specDigest === generationDigest(handle.workload) ? 0 : 1) : 1,
    deleting: metadata.phase === 'tearingDown',
    finalizers: metadata.finalizers,
    labels: metadata.labels,
    annotations: metadata.annotations,
    spec,
    status: companion && (same ? statusOf(companion) : inherited(companion)),
    handle,
  });
}

function statusOf({ generation: _generation, specDigest: _digest, workloadUid: _uid, ...status }: CompanionSpec): WorkloadStatus {
  return status;
}

/** Of an earlier incarnation (before an import, say) only the inventory counts: its children are this one's now. */
function inherited({ children }: CompanionSpec): WorkloadStatus {
  return { created: false, observedGeneration: 0, conditions: [], children };
}

export function companionSpec(view: WorkloadView, next: WorkloadStatus, workload: Resource): CompanionSpec {
  return { ...next, generation: view.generation, specDigest: generationDigest(workload), workloadUid: view.uid };
}
