import { posix } from 'node:path';
import type { Environment, Logger, SpawnRequest } from '../environment/index.ts';
import type { Pointer, Resource } from '../resource/index.ts';
import { compareIds, digest } from '../resource/index.ts';
import type { ControllerContext, ReconcileResult } from '../runtime/index.ts';
import { find, finish, keyOf, readStatus, systemCode, systemText, writeStatus } from './companion.ts';
import { lastLine, removeOutputs, rotateOutput } from './output-file.ts';
import type { ProcessControllerOptions } from './process-controller.ts';
import type { ProcessSpec, ProcessStatus } from './process-definition.ts';
import { processDefinition, processStatusDefinition, restartDigest } from './process-definition.ts';
import { adoptedExitText, ProcessRun, recordedIdentity } from './process-run.ts';
import { stopStep } from './process-stop.ts';

export const processesFinalizer = 'host-processes';

const defaultInitialDelayMs = 100;
const defaultMaxDelayMs = 30_000;
/** After so long a run the back-off starts anew. */
const steadyMs = 60_000;
/** How often a start that waits for something is tried again, at the latest. */
const waitingMs = 1_000;

/** The reason of a start that is on record, and not yet let go. */
const gated = 'Gated';

/** What this instance knows of one resource. Nothing depends on it for being right. */
interface Slot {
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
interface Visit {
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

/** Starts, adopts, watches, restarts and stops processes: a step at a time, each from what is recorded and what is found. */
export class ProcessKeeper {
  readonly #environment: Environment;
  readonly #options: ProcessControllerOptions;
  readonly #slots = new Map<string, Slot>();
  #wake: ((pointer: Pointer) => void) | undefined;
  #order = 0;

  constructor(options: ProcessControllerOptions) {
    this.#environment = options.environment;
    this.#options = options;
  }

  start(wake: (pointer: Pointer) => void): void {
    this.#wake = wake;
  }

  async reconcile(context: ControllerContext, pointer: Pointer): Promise<ReconcileResult | void> {
    const resource = await find(context, processDefinition.pointer(pointer.id, pointer.namespace));
    if (resource === undefined) return this.#abandoned(context, pointer);
    const slot = this.#slot(pointer);
    const recorded = (await find(context, processStatusDefinition.pointer(pointer.id, pointer.namespace)))?.spec;
    const status = recorded?.uid === resource.metadata.uid ? recorded : undefined;
    if (slot.run === undefined) await this.#adopt(slot, recorded);
    slot.outputFile = status?.outputFile;
    if (resource.metadata.phase === 'tearingDown') return this.#takeDown(context, resource, slot, status);
    if (!resource.metadata.finalizers.includes(processesFinalizer)) await context.addFinalizer(pointer, processesFinalizer);
    const { spec } = processDefinition.from(resource);
    const visit: Visit = { context, resource, spec, slot, status, observed: digest(resource.spec), digest: restartDigest(spec) };
    const { run } = slot;
    if (run === undefined) return this.#startWhenDue(visit);
    if (run.uid !== resource.metadata.uid || isOutdated(visit)) return this.#restart(visit, run);
    if (run.exit !== undefined) return this.#ended(visit, run);
    return this.#watch(visit, run);
  }

  /** It runs: its readiness is found out and told. */
  async #watch(visit: Visit, run: ProcessRun): Promise<void> {
    const { status, spec } = visit;
    const { ready, problem } = await run.watchReadiness(spec, status?.ready === true);
    const state = ready || status?.state === 'Running' ? 'Running' : 'Starting';
    await this.#save(visit, {
      restartDigest: visit.digest,
      restartAt: spec.restartAt,
      outputFile: spec.outputFile,
      ...status,
      ...run.identity,
      startedAt: run.startedAtText,
      outputStart: run.outputStart,
      state,
      ready,
      reason: ready ? '' : 'NotReady',
      message: problem,
    });
    if (ready) this.#wakeWaiting();
  }

  /** Cuts outputs that have grown too long. */
  async rotateOutputs(log: Logger): Promise<void> {
    for (const { run, outputFile } of this.#slots.values()) {
      if (run === undefined || outputFile === undefined) continue;
      try {
        await rotateOutput(this.#environment.files, outputFile, this.#options.output);
      } catch (error) {
        log.log('warn', 'an output could not be rotated', { path: outputFile, error });
      }
    }
  }

  /** After the last reconcile: stops what runs, the last started first, or only stops looking after it. */
  async shutDown(context: ControllerContext): Promise<void> {
    const slots = [...this.#slots.values()].sort(
      (left, right) => compareIds(right.run?.startedAtText ?? '', left.run?.startedAtText ?? '') || right.order - left.order,
    );
    for (const slot of slots) {
      const { run } = slot;
      if (run === undefined) continue;
      if (this.#options.onShutdown === 'stop') await this.#stopNow(context, slot, run);
      await run.release();
    }
    this.#slots.clear();
  }

  async #stopNow(context: ControllerContext, slot: Slot, run: ProcessRun): Promise<void> {
    let stop: ProcessSpec['stop'];
    try {
      stop = (await context.get(processDefinition.pointer(slot.pointer.id, slot.pointer.namespace))).spec.stop;
    } catch (error) {
      context.log.log('warn', 'how to stop a process could not be read; using the defaults', { id: slot.pointer.id, error });
    }
    // A process must not outlive this program only because the store has gone before it.
    for (
      let afterMs = await stopStep(this.#environment, run, stop);
      afterMs !== undefined;
      afterMs = await stopStep(this.#environment, run, stop)
    ) {
      await this.#environment.sleep(afterMs);
    }
    try {
      const resource = await context.get(processDefinition.pointer(slot.pointer.id, slot.pointer.namespace));
      const status = await readStatus(context, processStatusDefinition, resource);
      if (status === undefined) return;
      await writeStatus(context, processStatusDefinition, slot.pointer, {
        ...withoutProcess(status),
        state: 'Stopped',
        ready: false,
        reason: 'OperatorStopped',
        message: 'it was stopped with its operator, and starts again with it',
        ...(run.exit && { lastExit: run.exit }),
      });
    } catch (error) {
      context.log.log('warn', 'a stopped process could not be recorded', { id: slot.pointer.id, error });
    }
  }

  #slot({ namespace, type, id }: Pointer): Slot {
    const key = keyOf({ namespace, type, id });
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = {
        pointer: { namespace, type, id },
        run: undefined,
        backOffUntil: undefined,
        settled: false,
        waiting: false,
        outputFile: undefined,
        order: 0,
      };
      this.#slots.set(key, slot);
    }
    return slot;
  }

  /** The resource went although our finalizer was on it: what still runs for it is stopped all the same. */
  async #abandoned(context: ControllerContext, pointer: Pointer): Promise<ReconcileResult | void> {
    const key = keyOf(pointer);
    const slot = this.#slots.get(key);
    if (slot?.run !== undefined) {
      const afterMs = await stopStep(this.#environment, slot.run, undefined);
      if (afterMs !== undefined) return { requeueAfterMs: afterMs };
    }
    await this.#forget(key);
    const companion = await find(context, processStatusDefinition.pointer(pointer.id, pointer.namespace));
    if (companion !== undefined) await context.destroy(companion.metadata, { uid: companion.metadata.uid });
  }

  async #forget(key: string): Promise<void> {
    const slot = this.#slots.get(key);
    this.#slots.delete(key);
    await slot?.run?.release();
  }

  /** Takes on what an earlier instance started. */
  async #adopt(slot: Slot, status: ProcessStatus | undefined): Promise<void> {
    const identity = recordedIdentity(status);
    if (identity === undefined || status === undefined) return;
    const options = {
      environment: this.#environment,
      uid: status.uid,
      identity,
      startedAtText: status.startedAt ?? '',
      outputStart: status.outputStart ?? 0,
      onChange: () => this.#wake?.(slot.pointer),
    };
    slot.order = ++this.#order;
    if ((await this.#environment.processes.inspect(identity)) === 'gone') slot.run = ProcessRun.gone(options);
    else {
      slot.run = ProcessRun.adopted(options);
      slot.settled = true;
    }
  }

  async #takeDown(
    context: ControllerContext,
    resource: Resource,
    slot: Slot,
    status: ProcessStatus | undefined,
  ): Promise<ReconcileResult | void> {
    if (!resource.metadata.finalizers.includes(processesFinalizer)) return;
    const { run } = slot;
    if (run !== undefined) {
      if (status !== undefined && status.state !== 'Stopping') {
        await writeStatus(context, processStatusDefinition, resource.metadata, {
          ...status,
          state: 'Stopping',
          ready: false,
          reason: 'Terminating',
          message: 'is being taken down',
        });
      }
      const afterMs = await stopStep(this.#environment, run, (resource.spec as Partial<ProcessSpec>).stop);
      if (afterMs !== undefined) return { requeueAfterMs: afterMs };
      await run.release();
      slot.run = undefined;
    }
    if (status?.outputFile !== undefined) await removeOutputs(this.#environment.files, status.outputFile, this.#options.output.keep);
    await finish(context, processStatusDefinition, resource.metadata, processesFinalizer);
    await this.#forget(keyOf(resource.metadata));
  }

  /** It is to become another, or was asked to restart: stopped, and then started without delay. */
  async #restart(visit: Visit, run: ProcessRun): Promise<ReconcileResult | void> {
    const { slot, status, spec } = visit;
    const requested = status?.restartDigest === visit.digest;
    if (run.stoppingSince === undefined && run.exit === undefined) {
      await this.#save(visit, {
        restartDigest: '',
        ...status,
        ...run.identity,
        state: 'Stopping',
        ready: false,
        reason: 'Restarting',
        message: requested ? 'a restart was asked for' : 'its declaration has changed',
      });
    }
    const afterMs = await stopStep(this.#environment, run, spec.stop);
    if (afterMs !== undefined) return { requeueAfterMs: afterMs };
    await run.release();
    slot.run = undefined;
    slot.backOffUntil = undefined;
    return this.#start(visit);
  }

  /** It has ended by itself. What is left of its group goes before anything else happens. */
  async #ended(visit: Visit, run: ProcessRun): Promise<ReconcileResult | void> {
    const { slot, spec, status } = visit;
    const afterMs = await stopStep(this.#environment, run, spec.stop);
    if (afterMs !== undefined) return { requeueAfterMs: afterMs };
    await run.release();
    slot.run = undefined;
    const exit = run.exit as NonNullable<typeof run.exit>;
    const lastOutput = await lastLine(this.#environment.files, status?.outputFile ?? spec.outputFile, run.outputStart);
    const rebooted = run.identity.bootId !== (await this.#environment.processes.bootId());
    const known = { ...withoutProcess(status), lastExit: exit, lastOutput };
    // It never got through its gate: the program before this one ended first.
    if (status?.reason === gated && exit.text === adoptedExitText) {
      await this.#save(visit, { ...withoutProcess(status), state: 'Waiting', ready: false, reason: 'NotStarted', message: '' });
      return this.#start(visit);
    }
    const policy = spec.restart?.policy ?? 'always';
    if (exit.code === 0 && policy !== 'always') {
      await this.#save(visit, { ...known, state: 'Completed', ready: true, reason: 'Completed', message: exit.text, backOffMs: undefined });
      return this.#wakeWaiting();
    }
    // The machine was started anew: nothing went wrong with the process.
    if (rebooted && policy !== 'never') {
      await this.#save(visit, {
        ...known,
        state: 'Waiting',
        ready: false,
        reason: 'Rebooted',
        message: 'the machine was started anew',
        backOffMs: undefined,
      });
      slot.settled = false;
      return this.#start({ ...visit, status: await readStatus(visit.context, processStatusDefinition, visit.resource) });
    }
    const why = exit.code === 126 || exit.code === 127 ? await this.#environment.processes.diagnose(this.#request(spec)) : undefined;
    const message = why ?? (lastOutput === undefined ? exit.text : `${exit.text}: ${lastOutput}`);
    const reason = why === undefined ? 'Exited' : 'CannotStart';
    if (policy === 'never') return this.#save(visit, { ...known, state: 'Failed', ready: false, reason, message, backOffMs: undefined });
    const steady = this.#environment.elapsed() - run.since >= steadyMs;
    const restarts = (status?.restarts ?? 0) + (why === undefined ? 1 : 0);
    return this.#backOff(visit, {
      ...known,
      restarts,
      reason,
      message,
      backOffMs: nextDelay(spec, steady ? undefined : status?.backOffMs),
    });
  }

  async #backOff(visit: Visit, next: Partial<Status> & { readonly backOffMs: number }): Promise<ReconcileResult> {
    visit.slot.backOffUntil = this.#environment.elapsed() + next.backOffMs;
    await this.#save(visit, { ...next, state: 'BackOff', ready: false });
    return { requeueAfterMs: next.backOffMs };
  }

  async #startWhenDue(visit: Visit): Promise<ReconcileResult | void> {
    const { slot, status } = visit;
    if (status === undefined || isOutdated(visit)) return this.#start(visit);
    if (status.state === 'Completed' || status.state === 'Failed') return this.#save(visit, status);
    if (status.state === 'BackOff') {
      // After a restart of this program the whole wait begins again: only elapsed time measures it.
      slot.backOffUntil ??= this.#environment.elapsed() + (status.backOffMs ?? 0);
      const leftMs = slot.backOffUntil - this.#environment.elapsed();
      if (leftMs > 0) {
        await this.#save(visit, status);
        return { requeueAfterMs: leftMs };
      }
    }
    return this.#start(visit);
  }

  async #start(visit: Visit): Promise<ReconcileResult | void> {
    const { context, spec, slot, status, resource } = visit;
    const { processes, files } = this.#environment;
    const waits = (await this.#unready(visit)) ?? (await this.#takenPort(spec));
    slot.waiting = waits?.reason === 'WaitingForProcess';
    if (waits !== undefined) {
      await this.#save(visit, { ...withoutProcess(status), state: 'Waiting', ready: false, ...waits });
      return { requeueAfterMs: waitingMs };
    }
    const request = this.#request(spec);
    const before = isOutdated(visit) ? { ...withoutProcess(status), backOffMs: undefined } : withoutProcess(status);
    let outputStart: number;
    try {
      const problem = await processes.diagnose(request);
      if (problem !== undefined) return this.#cannotStart(visit, before, problem);
      await files.makeDirectory(posix.dirname(spec.outputFile));
      outputStart = (await files.stat(spec.outputFile))?.size ?? 0;
    } catch (error) {
      if (systemCode(error) === '') throw error;
      return this.#cannotStart(visit, before, systemText(error));
    }
    context.signal.throwIfAborted();
    let gate: Awaited<ReturnType<typeof processes.spawnGated>>;
    try {
      gate = await processes.spawnGated(request);
    } catch (error) {
      if (systemCode(error) === '') throw error;
      return this.#cannotStart(visit, before, systemText(error));
    }
    const startedAt = this.#environment.timestamp();
    try {
      await this.#save(visit, {
        ...before,
        state: 'Starting',
        ready: false,
        reason: gated,
        message: '',
        ...gate.identity,
        startedAt,
        outputStart,
        outputFile: spec.outputFile,
        restartDigest: visit.digest,
        restartAt: spec.restartAt,
      });
    } catch (error) {
      // What is not on record must not run.
      await gate.abandon();
      throw error;
    }
    slot.outputFile = spec.outputFile;
    slot.backOffUntil = undefined;
    slot.settled = true;
    slot.order = ++this.#order;
    const run = ProcessRun.started(gate, {
      environment: this.#environment,
      uid: resource.metadata.uid,
      identity: gate.identity,
      startedAtText: startedAt,
      outputStart,
      onChange: () => this.#wake?.(slot.pointer),
    });
    slot.run = run;
    await gate.release();
    context.log.log('info', 'a process was started', { id: resource.metadata.id, pid: gate.identity.pid });
    // An earlier run that was ready says nothing about this one.
    await this.#watch({ ...visit, status: await readStatus(context, processStatusDefinition, resource) }, run);
  }

  /** Those before it that are not ready; only for a first start, never after a crash. */
  async #unready({ context, spec, slot }: Visit): Promise<Pick<ProcessStatus, 'reason' | 'message'> | undefined> {
    if (slot.settled || spec.after === undefined) return undefined;
    const unready: string[] = [];
    for (const id of spec.after) {
      const status = await find(context, processStatusDefinition.pointer(id, slot.pointer.namespace));
      if (status?.spec.ready !== true) unready.push(id);
    }
    return unready.length === 0 ? undefined : { reason: 'WaitingForProcess', message: `waits for ${unready.join(', ')} to be ready` };
  }

  async #takenPort(spec: ProcessSpec): Promise<Pick<ProcessStatus, 'reason' | 'message'> | undefined> {
    for (const [name, port] of Object.entries(spec.ports ?? {})) {
      if (await this.#environment.network.portFree(port)) continue;
      return {
        reason: 'PortTaken',
        message: `port ${port}, kept for \${port:${name}}, is in use by another program; end that program, or delete the stack and apply it again for another port`,
      };
    }
    return undefined;
  }

  async #cannotStart(visit: Visit, before: Partial<Status>, message: string): Promise<ReconcileResult | void> {
    const next = { ...before, reason: 'CannotStart', message, restartDigest: visit.digest, restartAt: visit.spec.restartAt };
    if (visit.spec.restart?.policy === 'never') return this.#save(visit, { ...next, state: 'Failed', ready: false, backOffMs: undefined });
    return this.#backOff(visit, { ...next, backOffMs: nextDelay(visit.spec, before.backOffMs) });
  }

  #request(spec: ProcessSpec): SpawnRequest {
    return {
      command: spec.command,
      directory: spec.directory,
      environment: { ...this.#environment.processes.inherited(), ...spec.environment },
      outputFile: spec.outputFile,
    };
  }

  async #save(visit: Visit, next: Partial<Status>): Promise<void> {
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

  #wakeWaiting(): void {
    for (const slot of this.#slots.values()) if (slot.waiting) this.#wake?.(slot.pointer);
  }
}

/** A status under edit: a key may be there without a value, and is left out when it is written. */
type Status = { [Key in keyof ProcessStatus]: ProcessStatus[Key] | undefined } & Pick<
  ProcessStatus,
  'uid' | 'observed' | 'state' | 'ready' | 'reason' | 'message' | 'restarts'
>;

/** Whether what runs, or ran, is not what is declared, or a restart was asked for since. */
function isOutdated({ status, digest: wanted, spec }: Visit): boolean {
  if (status?.restartDigest === undefined) return false;
  return status.restartDigest !== wanted || (spec.restartAt !== undefined && spec.restartAt !== status.restartAt);
}

function withoutProcess(status: ProcessStatus | undefined): Omit<ProcessStatus, 'pid' | 'startTime' | 'bootId'> {
  const { pid: _pid, startTime: _start, bootId: _boot, ...rest } = status ?? ({} as ProcessStatus);
  return rest;
}

function nextDelay(spec: ProcessSpec, beforeMs: number | undefined): number {
  const { initialDelayMs = defaultInitialDelayMs, maxDelayMs = defaultMaxDelayMs } = spec.restart ?? {};
  return Math.min(beforeMs === undefined ? initialDelayMs : beforeMs * 2, maxDelayMs);
}
