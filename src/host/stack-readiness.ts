import type { Environment } from '../environment/index.ts';
import type { Resource } from '../resource/index.ts';
import { isNotFoundError } from '../resource/index.ts';
import type { ControllerContext, Namespaces } from '../runtime/index.ts';
import { namespacesWith } from '../runtime/index.ts';
import type { State } from '../state/index.ts';
import { listNamespaces } from '../state/index.ts';
import type { CompanionSpec, Condition } from '../workload/index.ts';
import { readParent, setCondition } from '../workload/index.ts';
import { processesController, stacksController } from './names.ts';
import { processDefinition, processStatusDefinition } from './process-definition.ts';
import { recordedIdentity } from './process-run.ts';
import { stackStatusDefinition } from './stack-definition.ts';

/**
 * Before an operator starts: what the last one left as ready and is not any more must not pass for ready until it was
 * looked at. What still runs is left alone.
 */
export async function distrustReadiness(state: State, environment: Environment, namespaces: Namespaces): Promise<void> {
  const reader = { namespaces: (type: string) => listNamespaces(state, type) };
  const places = new Set<string>();
  // A process need not be of a stack.
  for (const { type } of [processStatusDefinition, stackStatusDefinition])
    for (const namespace of await namespacesWith(reader, namespaces, type)) places.add(namespace);
  for (const namespace of places) {
    const ready = new Set<string>();
    for (const { metadata, spec } of (await state.list(processStatusDefinition.kind(namespace))).items) {
      const identity = recordedIdentity(spec);
      const lost = identity !== undefined && (await environment.processes.inspect(identity)) === 'gone';
      if (!lost && spec.ready) ready.add(metadata.id);
      if (!lost || !spec.ready) continue;
      await edit(state, metadata, processesController, (draft: { spec: object }) => {
        Object.assign(draft.spec, { ready: false, reason: 'Lost', message: 'it ended while nobody looked' });
      });
    }
    const stacks = new Set<string>();
    for (const { metadata } of (await state.list(processDefinition.kind(namespace))).items) {
      const parent = readParent(metadata);
      if (parent !== undefined && !ready.has(metadata.id)) stacks.add(parent.name);
    }
    const message = 'the operator has started, and looks at its processes';
    for (const { metadata } of (await state.list(stackStatusDefinition.kind(namespace))).items) {
      if (!stacks.has(metadata.id)) continue;
      await edit(state, metadata, stacksController, (draft: { spec: object }) =>
        markUnready(draft.spec as CompanionSpec, 'Unknown', 'OperatorStarted', message, environment.timestamp()),
      );
    }
  }
}

/** When an operator has stopped its processes: their stacks are not ready, also for who looks while nobody runs. */
export async function tellStopped(context: ControllerContext, environment: Environment, namespaces: Namespaces): Promise<void> {
  const message = 'its operator was stopped, and its processes with it';
  for (const namespace of await namespacesWith(context, namespaces, stackStatusDefinition.type)) {
    for (const { metadata } of (await context.list(stackStatusDefinition.kind(namespace))).items) {
      await context.updateWithConflicts(stackStatusDefinition.pointer(metadata.id, namespace), (draft) =>
        markUnready(draft.spec as CompanionSpec, 'False', 'OperatorStopped', message, environment.timestamp()),
      );
    }
  }
}

function markUnready(status: CompanionSpec, value: 'Unknown' | 'False', reason: string, message: string, timestamp: string): void {
  const conditions = status.conditions as Condition[];
  if (conditions.find(({ type }) => type === 'Ready')?.status !== 'True') return;
  setCondition(conditions, { type: 'Ready', status: value, reason, message, observedGeneration: status.observedGeneration }, timestamp);
}

async function edit(state: State, pointer: Resource['metadata'], owner: string, change: (draft: { spec: object }) => void): Promise<void> {
  try {
    await state.updateWithConflicts(pointer, (draft) => change(draft as { spec: object }), { owner, expectedPhase: 'any' });
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
}
