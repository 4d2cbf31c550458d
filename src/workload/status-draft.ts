import { sameValue } from '../resource/index.ts';
import { findCondition } from './conditions.ts';
import { childKey } from './identity.ts';
import type { ChildRef, Condition, InventoryEntry, WorkloadStatus } from './port.ts';

/** The status of a workload under edit. Nothing is written until the engine does. */
export class StatusDraft {
  created: boolean;
  observedGeneration: number;
  /** The workload's version that this is computed from; `undefined`: nothing was computed yet. */
  observedVersion: string | undefined;
  conditions: Condition[];
  extra: Record<string, unknown>;
  /** The workload goes and its children stay; once asked for, it is not forgotten. */
  orphan: boolean;
  readonly #children: Map<string, InventoryEntry>;
  #written: WorkloadStatus | undefined;
  /** Children of what is written, once asked for. */
  #byKey: ReadonlyMap<string, InventoryEntry> | undefined;

  constructor(status: WorkloadStatus | undefined, generation: number, observedVersion: string) {
    this.created = status?.created ?? false;
    this.observedGeneration = generation;
    this.conditions = [...(status?.conditions ?? [])];
    this.extra = { ...status?.extra };
    this.orphan = status?.orphan ?? false;
    this.#children = new Map((status?.children ?? []).map((entry) => [childKey(entry), entry]));
    this.#written = status;
    this.observedVersion = observedVersion;
  }

  /** What the store holds. */
  get written(): WorkloadStatus | undefined {
    return this.#written;
  }

  get children(): readonly InventoryEntry[] {
    return [...this.#children.values()];
  }

  child(ref: Pick<ChildRef, 'group' | 'kind' | 'namespace' | 'name'>): InventoryEntry | undefined {
    return this.#children.get(childKey(ref));
  }

  setChild(entry: InventoryEntry): void {
    this.#children.set(childKey(entry), entry);
  }

  dropChild(ref: Pick<ChildRef, 'group' | 'kind' | 'namespace' | 'name'>): void {
    this.#children.delete(childKey(ref));
  }

  /** The status as it would be written now. */
  snapshot(): WorkloadStatus {
    return {
      created: this.created,
      observedGeneration: this.observedGeneration,
      ...(this.observedVersion !== undefined && { observedVersion: this.observedVersion }),
      conditions: this.conditions.map((condition) => this.#steadyCondition(condition)),
      children: [...this.#children.values()].map((entry) => this.#steadyChild(entry)).sort(byOrder),
      ...(Object.keys(this.extra).length > 0 && { extra: { ...this.extra } }),
      ...(this.orphan && { orphan: true }),
    };
  }

  /** What changes and comes back within one reconcile has not changed: the time of its last transition stays. */
  #steadyCondition(condition: Condition): Condition {
    const before = findCondition(this.#written?.conditions ?? [], condition.type);
    return before?.status === condition.status ? { ...condition, lastTransitionTime: before.lastTransitionTime } : condition;
  }

  #steadyChild(entry: InventoryEntry): InventoryEntry {
    const before = this.#writtenChildren().get(childKey(entry));
    return before?.ready === entry.ready ? { ...entry, lastTransitionTime: before.lastTransitionTime } : entry;
  }

  #writtenChildren(): ReadonlyMap<string, InventoryEntry> {
    this.#byKey ??= new Map((this.#written?.children ?? []).map((entry) => [childKey(entry), entry]));
    return this.#byKey;
  }

  /** Nothing was computed from the present version: what the status says is still about the one before. */
  keepObserved(): void {
    this.observedGeneration = this.#written?.observedGeneration ?? 0;
    this.observedVersion = this.#written?.observedVersion;
  }

  /** The status that the store holds, with the present inventory: what a write before the first effect says. */
  writeAhead(): WorkloadStatus {
    const { children, extra, orphan } = this.snapshot();
    const before = this.#written ?? { created: false, observedGeneration: 0, conditions: [] };
    return { ...before, children, ...(extra !== undefined && { extra }), ...(orphan && { orphan }) };
  }

  markWritten(status: WorkloadStatus): void {
    this.#written = status;
    this.#byKey = undefined;
  }
}

function byOrder(left: InventoryEntry, right: InventoryEntry): number {
  return left.order - right.order || (childKey(left) < childKey(right) ? -1 : 1);
}

/** Whether two statuses say the same. */
export function sameStatus(left: WorkloadStatus | undefined, right: WorkloadStatus): boolean {
  return left !== undefined && sameValue(left, right);
}

/** Whether two statuses differ at most in the text of messages. */
export function sameButMessages(left: WorkloadStatus | undefined, right: WorkloadStatus): boolean {
  return left !== undefined && sameValue(withoutMessages(left), withoutMessages(right));
}

function withoutMessages(status: WorkloadStatus): unknown {
  const strip = ({ message: _message, ...rest }: { readonly message: string }): unknown => rest;
  return { ...status, conditions: status.conditions.map(strip), children: status.children.map(strip) };
}
