import type { Logger } from '../environment/index.ts';
import { decide } from './apply-child.ts';
import type { Difference } from './differences.ts';
import { differences } from './differences.ts';
import type { WorkloadEngine } from './engine.ts';
import { childKey } from './identity.ts';
import type { Desired, InventoryEntry, Live, StorePort, WorkloadView } from './port.ts';
import { isPruneBlocked, surplus } from './prune.ts';
import { recoverInventory } from './recover.ts';

/** What a reconcile would do to one child. `wait`: not now (it is being deleted, or its kind or namespace is not there). */
export interface PlannedChild {
  readonly child: Desired;
  readonly action: 'create' | 'update' | 'adopt' | 'keep' | 'wait' | 'refuse';
  readonly live: Live | undefined;
  /** What an update or adoption changes. */
  readonly differences: readonly Difference[];
  /** Why it would be refused or has to wait. */
  readonly problem?: string;
}

export interface Plan {
  /** The phases that would run, in order. */
  readonly phases: readonly string[];
  readonly children: readonly PlannedChild[];
  /** In the order in which they would go. */
  readonly prune: readonly InventoryEntry[];
  /** All children would be lost, so that none is pruned until the workload says that it is meant. */
  readonly pruneBlocked: boolean;
}

/** The difference between a workload's desired and live children, by the same functions as a reconcile, without a write. */
export async function plan<Spec, Input>(
  engine: WorkloadEngine<Spec, Input>,
  view: WorkloadView,
  port: StorePort,
  log: Logger,
  signal: AbortSignal,
): Promise<Plan> {
  const { request, reconciler } = engine.open(view, port, log, { signal });
  const phases = engine.definition.phases.phases(request.event).map(({ name }) => name);
  await recoverInventory(reconciler, request);
  if (request.event === 'delete') return { phases, children: [], prune: inReverse(request.status.children), pruneBlocked: false };
  const desired = await request.resources();
  const children: PlannedChild[] = [];
  for (const child of desired) children.push(planned(child, await decide(reconciler, request, child, request.call)));
  const wanted = new Set(desired.map((child) => childKey(child.ref)));
  const uids = new Set(children.map(({ live }) => live?.uid ?? '').filter((uid) => uid !== ''));
  const prune = inReverse(surplus(request.status.children, wanted, uids));
  return { phases, children, prune, pruneBlocked: isPruneBlocked(view.annotations, wanted.size, prune) };
}

function planned(child: Desired, decision: Awaited<ReturnType<typeof decide>>): PlannedChild {
  switch (decision.kind) {
    case 'finished':
      return { child, action: 'keep', live: undefined, differences: [] };
    case 'keep':
      return { child, action: 'keep', live: decision.live, differences: [] };
    case 'pending':
      return { child, action: 'wait', live: decision.live, differences: [], problem: decision.message };
    case 'refuse':
      return { child, action: 'refuse', live: decision.live, differences: [], problem: decision.problem };
    default: {
      const { live, adopt } = decision;
      if (live === undefined) return { child, action: 'create', live, differences: [] };
      return { child, action: adopt ? 'adopt' : 'update', live, differences: differences(child, live) };
    }
  }
}

function inReverse(entries: readonly InventoryEntry[]): readonly InventoryEntry[] {
  return [...entries].sort((left, right) => right.order - left.order);
}
