import type { Logger } from '../environment/index.ts';
import { adoptionProblem } from './children.ts';
import type { WorkloadEngine } from './engine.ts';
import { childKey } from './identity.ts';
import type { Desired, InventoryEntry, Live, StorePort, WorkloadView } from './port.ts';

/** What a reconcile would do to one child. */
export interface PlannedChild {
  readonly child: Desired;
  readonly action: 'create' | 'update' | 'keep' | 'refuse';
  readonly live: Live | undefined;
  /** Why it would be refused. */
  readonly problem?: string;
}

export interface Plan {
  readonly children: readonly PlannedChild[];
  readonly prune: readonly InventoryEntry[];
}

/** The difference between a workload's desired and live children, by the same rules as a reconcile, without a write. */
export async function plan<Spec, Input>(
  engine: WorkloadEngine<Spec, Input>,
  view: WorkloadView,
  port: StorePort,
  log: Logger,
  signal: AbortSignal,
): Promise<Plan> {
  const desired = await engine.children(view, log, signal);
  const entries = new Map((view.status?.children ?? []).map((entry) => [childKey(entry), entry]));
  const children: PlannedChild[] = [];
  for (const child of desired) {
    const live = await port.get(child.ref, { signal });
    const problem = live && adoptionProblem(view, child, live, port.owner ?? '');
    if (live === undefined) children.push({ child, action: 'create', live });
    else if (problem !== undefined) children.push({ child, action: 'refuse', live, problem });
    else children.push({ child, action: port.diff(child, live, entries.get(childKey(child.ref))) === 'same' ? 'keep' : 'update', live });
  }
  const wanted = new Set(desired.map((child) => childKey(child.ref)));
  return { children, prune: [...entries].filter(([key]) => !wanted.has(key)).map(([, entry]) => entry) };
}
