import type { Environment, GatedProcess, ProcessExit, ProcessIdentity } from '../environment/index.ts';
import { digest } from '../resource/index.ts';
import type { ProcessExitStatus, ProcessSpec, ProcessStatus } from './process-definition.ts';
import { ReadinessWatch } from './readiness-watch.ts';

/** An adopted process is looked at this often: its end is not told to us. */
const adoptedPollMs = 500;

/** What is said of the end of a process that was not this program's child. */
export const adoptedExitText = 'unknown (adopted)';

export interface RunOptions {
  readonly environment: Environment;
  /** The incarnation of the resource that it runs for. */
  readonly uid: string;
  readonly identity: ProcessIdentity;
  /** RFC 3339. */
  readonly startedAtText: string;
  readonly outputStart: number;
  /** The process has ended, or its readiness has changed. */
  readonly onChange: () => void;
}

/** One process that runs, or has just ended, as this instance knows it. */
export class ProcessRun {
  readonly uid: string;
  readonly identity: ProcessIdentity;
  readonly startedAtText: string;
  readonly outputStart: number;
  /** This program started it; an adopted one was there before. */
  readonly own: boolean;
  /** When it was started or found, on elapsed time. */
  readonly since: number;
  /** Set once its leader has ended. */
  exit: ProcessExitStatus | undefined;
  /** Since when it is being stopped, on elapsed time. */
  stoppingSince: number | undefined;
  /** When others of its group were first seen to live on without their leader, on elapsed time. */
  exitedSince: number | undefined;
  readonly #environment: Environment;
  readonly #onChange: () => void;
  readonly #stopPolling = new AbortController();
  #polling: Promise<void> = Promise.resolve();
  #told: Promise<void> = Promise.resolve();
  #readiness: ReadinessWatch | undefined;
  #readinessDigest = '';

  private constructor(options: RunOptions, own: boolean) {
    this.own = own;
    this.#environment = options.environment;
    this.uid = options.uid;
    this.identity = options.identity;
    this.startedAtText = options.startedAtText;
    this.outputStart = options.outputStart;
    this.#onChange = options.onChange;
    this.since = options.environment.elapsed();
  }

  /** A child of this program. */
  static started(gate: GatedProcess, options: RunOptions): ProcessRun {
    const run = new ProcessRun(options, true);
    run.#told = gate.exited.then((exit) => run.#end(exitStatus(exit, options.environment.timestamp())));
    return run;
  }

  /** Once the group is empty: the system has told the end of a child too, which may be a moment later. */
  ended(): Promise<void> {
    return this.#told;
  }

  /** A process of an earlier instance, which lives. */
  static adopted(options: RunOptions): ProcessRun {
    const run = new ProcessRun(options, false);
    run.#polling = run.#poll(run.#stopPolling.signal).catch(() => {});
    return run;
  }

  /** A process of an earlier instance, which is gone. */
  static gone(options: RunOptions): ProcessRun {
    const run = new ProcessRun(options, false);
    run.#end({ text: adoptedExitText, at: options.environment.timestamp() });
    return run;
  }

  /** Looks after the readiness of this run, by the check that is declared now. */
  async watchReadiness(spec: ProcessSpec, knownReady: boolean): Promise<{ readonly ready: boolean; readonly problem: string }> {
    const wanted = digest(spec.ready ?? null);
    if (this.#readiness === undefined || this.#readinessDigest !== wanted) {
      const first = this.#readiness === undefined;
      await this.#readiness?.end();
      this.#readinessDigest = wanted;
      this.#readiness = new ReadinessWatch({
        environment: this.#environment,
        spec,
        outputStart: this.outputStart,
        ready: first && knownReady,
        startedAt: this.since,
        onChange: this.#onChange,
      });
    }
    return this.#readiness;
  }

  /** Ends what looks after this run; the process itself is left alone. */
  async release(): Promise<void> {
    this.#stopPolling.abort();
    await Promise.all([this.#polling, this.#readiness?.end()]);
  }

  #end(exit: ProcessExitStatus): void {
    if (this.exit !== undefined) return;
    this.exit = exit;
    this.#onChange();
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { processes, log } = this.#environment;
    for (let blind = false; ; ) {
      try {
        if ((await processes.inspect(this.identity)) === 'gone') break;
        blind = false;
      } catch (error) {
        // That it cannot be looked at (too many open files, say) does not mean that it has ended, nor that nobody needs to know.
        if (!blind) log.log('warn', 'an adopted process cannot be looked at; trying again', { pid: this.identity.pid, error });
        blind = true;
      }
      await this.#environment.sleep(adoptedPollMs, signal);
    }
    this.#end({ text: adoptedExitText, at: this.#environment.timestamp() });
  }
}

function exitStatus({ code, signal }: ProcessExit, at: string): ProcessExitStatus {
  if (signal !== undefined) return { signal, text: `ended by ${signal}`, at };
  return { ...(code !== undefined && { code }), text: `exited with ${code ?? 'no code'}`, at };
}

/** The identity that a status records; `undefined`: there is no process. */
export function recordedIdentity(status: ProcessStatus | undefined): ProcessIdentity | undefined {
  if (status?.pid === undefined || status.startTime === undefined || status.bootId === undefined) return undefined;
  return { pid: status.pid, startTime: status.startTime, bootId: status.bootId };
}
