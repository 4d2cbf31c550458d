import type { Environment } from '../environment/index.ts';
import type { ProcessRun } from './process-run.ts';
import type { StopSpec } from './shared-schemas.ts';

const defaultGraceMs = 5_000;
/** How often a group that is being stopped is looked at. */
const lookMs = 20;
/** … and one that does not even end when it is killed. */
const stuckLookMs = 1_000;

/**
 * One step towards an empty process group: the stop signal first, SIGKILL once the leader has ended or the grace is
 * over. Answers when to take the next step; `undefined`: nobody of the group lives.
 */
export async function stopStep(environment: Environment, run: ProcessRun, stop: StopSpec | undefined): Promise<number | undefined> {
  const { processes } = environment;
  const { signal = 'SIGTERM', graceMs = defaultGraceMs } = stop ?? {};
  const members = await processes.group(run.identity);
  if (members.length === 0) return undefined;
  const now = environment.elapsed();
  // A leader that has ended was asked before, or ended by itself: those that it left are not asked.
  if (!members.includes(run.identity.pid)) {
    run.exitedSince ??= now;
    await processes.signalGroup(run.identity, 'SIGKILL');
    return now - run.exitedSince > stuckLookMs ? stuckLookMs : lookMs;
  }
  if (run.stoppingSince === undefined) {
    run.stoppingSince = now;
    await processes.signalGroup(run.identity, signal);
    return Math.min(lookMs, graceMs);
  }
  const leftMs = run.stoppingSince + graceMs - now;
  if (leftMs > 0) return Math.min(lookMs, leftMs);
  await processes.signalGroup(run.identity, 'SIGKILL');
  return leftMs < -stuckLookMs ? stuckLookMs : lookMs;
}
