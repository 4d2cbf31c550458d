import type { Environment } from '../environment/index.ts';
import type { ControllerContext } from '../runtime/index.ts';
import { readStatus, writeStatus } from './companion.ts';
import type { ProcessSpec } from './process-definition.ts';
import { processDefinition, processStatusDefinition } from './process-definition.ts';
import type { ProcessRun } from './process-run.ts';
import type { Slot } from './process-visit.ts';
import { withoutProcess } from './process-visit.ts';
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

/** Stops a process to its end, whatever the store says, and records that. */
export async function stopNow(
  environment: Environment,
  context: ControllerContext,
  { pointer }: Pick<Slot, 'pointer'>,
  run: ProcessRun,
): Promise<void> {
  let stop: ProcessSpec['stop'];
  try {
    stop = (await context.get(processDefinition.pointer(pointer.id, pointer.namespace))).spec.stop;
  } catch (error) {
    context.log.log('warn', 'how to stop a process could not be read; using the defaults', { id: pointer.id, error });
  }
  // A process must not outlive this program only because the store has gone before it.
  for (let afterMs = await stopStep(environment, run, stop); afterMs !== undefined; afterMs = await stopStep(environment, run, stop)) {
    await environment.sleep(afterMs);
  }
  await run.ended();
  try {
    const resource = await context.get(processDefinition.pointer(pointer.id, pointer.namespace));
    const status = await readStatus(context, processStatusDefinition, resource);
    if (status === undefined) return;
    await writeStatus(context, processStatusDefinition, pointer, {
      ...withoutProcess(status),
      state: 'Stopped',
      ready: false,
      reason: 'OperatorStopped',
      message: 'it was stopped with its operator, and starts again with it',
      ...(run.exit && { lastExit: run.exit }),
    });
  } catch (error) {
    context.log.log('warn', 'a stopped process could not be recorded', { id: pointer.id, error });
  }
}
