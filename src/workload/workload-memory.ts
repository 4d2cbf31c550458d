import { ChildMemory } from './child-memory.ts';
import type { EngineResult } from './engine-result.ts';
import { fromResult } from './engine-result.ts';
import type { ErrorClass } from './errors.ts';
import { retryAfterMs } from './errors.ts';
import { reconcileAtAnnotation } from './identity.ts';
import type { WorkloadView } from './port.ts';
import type { Outcome, Pending } from './registry.ts';

/** A pending phase is looked at again after this long at first, then half as long again each time. */
const pendingDelayMs = 1_000;
const maxPendingDelayMs = 30_000;
/** Back-off of conflicts in a row: as a queue's own, doubling. */
const conflictDelayMs = 5;
const maxConflictDelayMs = 60_000;
/** Conflicts and transient errors are told from this many in a row. */
const conflictsTold = 5;
const transientTold = 3;

/** What is remembered of one incarnation of a workload between reconciles; nothing depends on it for being right. */
export class WorkloadMemory {
  readonly uid: string;
  readonly children = new ChildMemory();
  /** Something went wrong: the next reads go past every cache. */
  fresh = false;
  /** When a status was written last, on the monotonic clock. */
  statusWrittenAt: number | undefined;
  /** Whether it was ready when that was told last. */
  ready: boolean | undefined;
  #reconcileAt: string | undefined;
  #pending: { readonly phase: string; readonly generation: number; count: number } | undefined;
  #conflicts = 0;
  #transient = 0;

  constructor(view: WorkloadView) {
    this.uid = view.uid;
    const ready = view.status?.conditions.find((condition) => condition.type === 'Ready');
    this.ready = ready && ready.status === 'True';
    this.#reconcileAt = view.annotations[reconcileAtAnnotation];
  }

  /** A run that somebody asked for trusts nothing that is remembered of children. */
  noticeRequest({ annotations }: WorkloadView): void {
    if (this.#reconcileAt === annotations[reconcileAtAnnotation]) return;
    this.#reconcileAt = annotations[reconcileAtAnnotation];
    this.children.forget();
  }

  /** Ends the rows that an outcome of this kind breaks. */
  noticeOutcome(kind: Outcome['kind']): void {
    if (kind !== 'conflict') this.#conflicts = 0;
    if (kind !== 'transient') this.#transient = 0;
    if (kind !== 'pending') this.#pending = undefined;
  }

  /** Counts an error, and answers how it is to be tried again and whether it is time to tell. */
  afterError(kind: Exclude<ErrorClass, 'terminal'>, error: Error): { readonly told: boolean; readonly result: EngineResult } {
    if (kind === 'conflict') {
      this.#conflicts++;
      const afterMs = Math.min(conflictDelayMs * 2 ** (this.#conflicts - 1), maxConflictDelayMs);
      const told = this.#conflicts >= conflictsTold;
      return { told, result: { kind: 'failure', error, quiet: !told, afterMs } };
    }
    if (kind === 'transient') this.#transient++;
    const afterMs = retryAfterMs(error);
    const result = { kind: 'failure', error, quiet: false, ...(afterMs !== undefined && { afterMs }) } as const;
    return { told: kind === 'failed' || this.#transient >= transientTold, result };
  }

  /** When to look again at a phase that is not done: its own time, else longer each time at this phase and generation. */
  afterPending({ phase, custom }: Pending, generation: number): EngineResult {
    if (custom !== undefined && custom.result !== 'backoff') {
      this.#pending = undefined;
      return fromResult(custom.result);
    }
    if (this.#pending?.phase !== phase || this.#pending.generation !== generation) this.#pending = { phase, generation, count: 0 };
    const afterMs = Math.min(pendingDelayMs * 1.5 ** this.#pending.count, maxPendingDelayMs);
    this.#pending.count++;
    return { kind: 'requeue', afterMs };
  }
}
