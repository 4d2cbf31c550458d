import type { Pointer, Resource } from '../resource/index.ts';
import type { ControllerContext } from '../runtime/index.ts';
import { writeStatus } from './companion.ts';
import type { ProcessSpec, ProcessStatus } from './process-definition.ts';
import { processStatusDefinition } from './process-definition.ts';
import type { ProcessRun } from './process-run.ts';

const defaultInitialDelayMs = 100;
const defaultMaxDelayMs = 30_000;

/** The reason of a start that is on record, and not yet let go. */
export const gated = 'Starting';

/** What this instance knows of one resource. Nothing depends on it for being right. */
export interface Slot {
  readonly pointer: Pointer;
  run: ProcessRun | undefined;
  /** On elapsed time. */
  backOffUntil: number | undefined;
  /** This instance has started or adopted it once: it no longer waits for those before it. */
  settled: boolean;
  /** It waits for others to be ready. */
  waiting: boolean;
  outputFile: string | undefined;
  /** Counts starts and adoptions. */
  order: number;
}

/** One resource on its way through one reconcile. */
export interface Visit {
  readonly context: ControllerContext;
  readonly resource: Resource<ProcessSpec>;
  readonly spec: ProcessSpec;
  readonly slot: Slot;
  readonly status: ProcessStatus | undefined;
  /** Digest of all that is declared. */
  readonly observed: string;
  /** Digest of what it is to be started with. */
  readonly digest: string;
}

/** A status under edit: a key may be there without a value, and is left out when it is written. */
export type Status = { [Key in keyof ProcessStatus]: ProcessStatus[Key] | undefined } & Pick<
  ProcessStatus,
  'uid' | 'observed' | 'state' | 'ready' | 'reason' | 'message' | 'restarts'
>;

/** Whether what runs, or ran, is not what is declared, or a restart was asked for since. */
export function isOutdated({ status, digest: wanted, spec }: Visit): boolean {
  if (status?.restartDigest === undefined) return false;
  return status.restartDigest !== wanted || (spec.restartAt !== undefined && spec.restartAt !== status.restartAt);
}

/** A status that tells of no process. */
export function withoutProcess(status: ProcessStatus | undefined): Omit<ProcessStatus, 'pid' | 'startTime' | 'bootId'> {
  const { pid: _pid, startTime: _start, bootId: _boot, ...rest } = status ?? ({} as ProcessStatus);
  return rest;
}

/** The wait before the next start. */
export function nextDelay(spec: ProcessSpec, beforeMs: number | undefined): number {
  const { initialDelayMs = defaultInitialDelayMs, maxDelayMs = defaultMaxDelayMs } = spec.restart ?? {};
  return Math.min(beforeMs === undefined ? initialDelayMs : beforeMs * 2, maxDelayMs);
}

/** Makes the status say this, and nothing more. */
export async function saveStatus(visit: Visit, next: Partial<Status>): Promise<void> {
  const full: Status = {
    restarts: 0,
    state: 'Waiting',
    ready: false,
    reason: '',
    message: '',
    ...next,
    uid: visit.resource.metadata.uid,
    observed: visit.observed,
  };
  const spec = Object.fromEntries(Object.entries(full).filter(([, value]) => value !== undefined)) as ProcessStatus;
  await writeStatus(visit.context, processStatusDefinition, visit.resource.metadata, spec);
}
