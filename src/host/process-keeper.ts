import { posix } from 'node:path';
import type { Environment, Logger, SpawnRequest } from '../environment/index.ts';
import type { Pointer, Resource } from '../resource/index.ts';
import { compareIds, digest } from '../resource/index.ts';
import type { ControllerContext, ReconcileResult } from '../runtime/index.ts';
import { find, finish, keyOf, readStatus, removeCompanion, systemCode, systemText, tellingFailure, writeStatus } from './companion.ts';
import { processesController } from './names.ts';
import { lastLine, removeOutputs, rotateOutput } from './output-file.ts';
import type { ProcessControllerOptions } from './process-controller.ts';
import type { ProcessSpec, ProcessStatus } from './process-definition.ts';
import { processDefinition, processStatusDefinition, restartDigest } from './process-definition.ts';
import { adoptedExitText, ProcessRun, recordedIdentity } from './process-run.ts';
import { stopNow, stopStep } from './process-stop.ts';
import type { Slot, Status, Visit } from './process-visit.ts';
import { gated, isOutdated, nextDelay, saveStatus, withoutProcess } from './process-visit.ts';
import { whyToWait } from './process-waits.ts';

/** After so long a run the back-off starts anew. */
const steadyMs = 60_000;
/** How often a start that waits for something is tried again, at the latest. */
const waitingMs = 1_000;

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
    if (!resource.metadata.finalizers.includes(processesController)) await context.addFinalizer(pointer, processesController);
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
    await saveStatus(visit, {
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
    const slots = [...this.#slots.values()].sort((left, right) => startedLater(right, left) || right.order - left.order);
    for (const slot of slots) {
      const { run } = slot;
      if (run === undefined) continue;
      if (this.#options.onShutdown === 'stop') await stopNow(this.#environment, context, slot, run);
      await run.release();
    }
    this.#slots.clear();
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
    const slot = this.#slot(pointer);
    // It may have been started by an earlier instance, which did not live to see that.
    if (slot.run === undefined)
      await this.#adopt(slot, (await find(context, processStatusDefinition.pointer(pointer.id, pointer.namespace)))?.spec);
    if (slot.run !== undefined) {
      const afterMs = await stopStep(this.#environment, slot.run, undefined);
      if (afterMs !== undefined) return { requeueAfterMs: afterMs };
    }
    await this.#forget(keyOf(pointer));
    await removeCompanion(context, processStatusDefinition, pointer);
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
    if (!resource.metadata.finalizers.includes(processesController)) return;
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
      await this.#leave(slot, run);
    }
    const { outputFile } = status ?? {};
    if (status !== undefined && outputFile !== undefined) {
      const remove = (): Promise<void> => removeOutputs(this.#environment.files, outputFile, this.#options.output.keep);
      await tellingFailure(context, processStatusDefinition, resource, { ...withoutProcess(status), uid: status.uid }, remove);
    }
    await finish(context, processStatusDefinition, resource.metadata, processesController);
    await this.#forget(keyOf(resource.metadata));
  }

  /** It is to become another, or was asked to restart: stopped, and then started without delay. */
  async #restart(visit: Visit, run: ProcessRun): Promise<ReconcileResult | void> {
    const { slot, status, spec } = visit;
    const requested = status?.restartDigest === visit.digest;
    if (run.stoppingSince === undefined && run.exit === undefined) {
      await saveStatus(visit, {
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
    await this.#leave(slot, run);
    slot.backOffUntil = undefined;
    return this.#start(visit);
  }

  /** It has ended by itself. What is left of its group goes before anything else happens. */
  async #ended(visit: Visit, run: ProcessRun): Promise<ReconcileResult | void> {
    const { slot, spec, status } = visit;
    const afterMs = await stopStep(this.#environment, run, spec.stop);
    if (afterMs !== undefined) return { requeueAfterMs: afterMs };
    const exit = run.exit as NonNullable<typeof run.exit>;
    const lastOutput = await lastLine(this.#environment.files, status?.outputFile ?? spec.outputFile, run.outputStart);
    const rebooted = run.identity.bootId !== (await this.#environment.processes.bootId());
    const known = { ...withoutProcess(status), lastExit: exit, lastOutput };
    // It never got through its gate: the program before this one ended first.
    if (status?.reason === gated && exit.text === adoptedExitText) {
      await saveStatus(visit, { ...withoutProcess(status), state: 'Waiting', ready: false, reason: 'NotStarted', message: '' });
      await this.#leave(slot, run);
      return this.#start(visit);
    }
    const policy = spec.restart?.policy ?? 'always';
    if (exit.code === 0 && policy !== 'always') {
      await saveStatus(visit, { ...known, state: 'Completed', ready: true, reason: 'Completed', message: exit.text, backOffMs: undefined });
      await this.#leave(slot, run);
      return this.#wakeWaiting();
    }
    // The machine was started anew: nothing went wrong with the process.
    if (rebooted && policy !== 'never') {
      await saveStatus(visit, {
        ...known,
        state: 'Waiting',
        ready: false,
        reason: 'Rebooted',
        message: 'the machine was started anew',
        backOffMs: undefined,
      });
      await this.#leave(slot, run);
      slot.settled = false;
      return this.#start({ ...visit, status: await readStatus(visit.context, processStatusDefinition, visit.resource) });
    }
    const why = exit.code === 126 || exit.code === 127 ? await this.#environment.processes.diagnose(this.#request(spec)) : undefined;
    const message = why ?? (lastOutput === undefined ? exit.text : `${exit.text}: ${lastOutput}`);
    const reason = why === undefined ? 'Exited' : 'CannotStart';
    if (policy === 'never') {
      await saveStatus(visit, { ...known, state: 'Failed', ready: false, reason, message, backOffMs: undefined });
      return this.#leave(slot, run);
    }
    const steady = this.#environment.elapsed() - run.since >= steadyMs;
    const restarts = (status?.restarts ?? 0) + (why === undefined ? 1 : 0);
    const backOffMs = nextDelay(spec, steady ? undefined : status?.backOffMs);
    const result = await this.#backOff(visit, { ...known, restarts, reason, message, backOffMs });
    await this.#leave(slot, run);
    return result;
  }

  /** A run is done with, once its end is on record. */
  async #leave(slot: Slot, run: ProcessRun): Promise<void> {
    await run.release();
    slot.run = undefined;
  }

  async #backOff(visit: Visit, next: Partial<Status> & { readonly backOffMs: number }): Promise<ReconcileResult> {
    visit.slot.backOffUntil = this.#environment.elapsed() + next.backOffMs;
    await saveStatus(visit, { ...next, state: 'BackOff', ready: false });
    return { requeueAfterMs: next.backOffMs };
  }

  async #startWhenDue(visit: Visit): Promise<ReconcileResult | void> {
    const { slot, status } = visit;
    if (status === undefined || isOutdated(visit)) return this.#start(visit);
    if (status.state === 'Completed' || status.state === 'Failed') return saveStatus(visit, status);
    if (status.state === 'BackOff') {
      // After a restart of this program the whole wait begins again: only elapsed time measures it.
      slot.backOffUntil ??= this.#environment.elapsed() + (status.backOffMs ?? 0);
      const leftMs = slot.backOffUntil - this.#environment.elapsed();
      if (leftMs > 0) {
        await saveStatus(visit, status);
        return { requeueAfterMs: leftMs };
      }
    }
    return this.#start(visit);
  }

  async #start(visit: Visit): Promise<ReconcileResult | void> {
    const { context, spec, slot, status, resource } = visit;
    const { processes, files } = this.#environment;
    const waits = await whyToWait(this.#environment, visit);
    slot.waiting = waits?.reason === 'WaitingForProcess';
    if (waits !== undefined) {
      await saveStatus(visit, { ...withoutProcess(status), state: 'Waiting', ready: false, ...waits });
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
      await saveStatus(visit, {
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

  async #cannotStart(visit: Visit, before: Partial<Status>, message: string): Promise<ReconcileResult | void> {
    const next = { ...before, reason: 'CannotStart', message, restartDigest: visit.digest, restartAt: visit.spec.restartAt };
    if (visit.spec.restart?.policy === 'never') return saveStatus(visit, { ...next, state: 'Failed', ready: false, backOffMs: undefined });
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

  #wakeWaiting(): void {
    for (const slot of this.#slots.values()) if (slot.waiting) this.#wake?.(slot.pointer);
  }
}

/** Positive when the first was started later. Only of adopted ones the wall clock must tell, which may have jumped. */
function startedLater({ run: first }: Slot, { run: second }: Slot): number {
  if (first === undefined || second === undefined || first.own !== second.own)
    return Number(first?.own ?? false) - Number(second?.own ?? false);
  return first.own ? 0 : compareIds(first.startedAtText, second.startedAtText);
}
