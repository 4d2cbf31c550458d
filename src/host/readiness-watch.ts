import type { Environment } from '../environment/index.ts';
import { thrownText } from '../resource/index.ts';
import { OutputSearch } from './output-file.ts';
import type { ProcessSpec } from './process-definition.ts';
import { checkOnce, lineMatcher } from './readiness-check.ts';

const defaultIntervalMs = 1_000;
/** Without a check, a process that has run for so long is ready. */
const defaultDelayMs = 1_000;
/** The first checks come sooner, so that a service that is up at once does not have to wait a whole interval. */
const firstIntervalMs = 25;
/** One that was ready stays so until this many checks in a row failed. */
const failuresAllowed = 3;
/** What a check complains of is told once a process has had this long to come up. */
const patienceMs = 2_000;

export interface ReadinessWatchOptions {
  readonly environment: Environment;
  readonly spec: ProcessSpec;
  /** Where the output of this run begins. */
  readonly outputStart: number;
  /** What is known already. */
  readonly ready: boolean;
  /** When it was started, on elapsed time. */
  readonly startedAt: number;
  /** Readiness, or what stands in its way, has changed. */
  readonly onChange: () => void;
}

/** Finds out whether one run of a process is ready, and goes on looking. Its checks run one at a time. */
export class ReadinessWatch {
  ready: boolean;
  /** Why not, in words; empty: nothing known yet. */
  problem = '';
  readonly #options: ReadinessWatchOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(options: ReadinessWatchOptions) {
    this.#options = options;
    this.ready = options.ready;
    this.#ended = this.#run(this.#stop.signal).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#tell(false, thrownText(error));
    });
  }

  /** Stops looking; resolves when nothing of it runs any more. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { environment, spec, outputStart, startedAt } = this.#options;
    const { ready } = spec;
    if (ready === undefined || ready.delayMs !== undefined) {
      const leftMs = startedAt + (ready?.delayMs ?? defaultDelayMs) - environment.elapsed();
      if (!this.ready && leftMs > 0) await environment.sleep(leftMs, signal);
      return this.#tell(true, '');
    }
    if (ready.log !== undefined) {
      if (this.ready) return;
      const search = new OutputSearch(environment.files, spec.outputFile, outputStart, lineMatcher(ready.log), signal);
      const expected = typeof ready.log === 'string' ? ready.log : ready.log.expression;
      return this.#repeat(signal, async () => ((await search.found()) ? undefined : `no line of its output has ${expected} yet`), true);
    }
    return this.#repeat(signal, () => checkOnce(environment, spec, signal), false);
  }

  async #repeat(signal: AbortSignal, check: () => Promise<string | undefined>, once: boolean): Promise<void> {
    const { environment, spec, startedAt } = this.#options;
    const intervalMs = spec.ready?.intervalMs ?? defaultIntervalMs;
    let waitMs = Math.min(firstIntervalMs, intervalMs);
    let failures = 0;
    for (;;) {
      const problem = await check().catch(thrownText);
      signal.throwIfAborted();
      if (problem === undefined) {
        failures = 0;
        this.#tell(true, '');
        if (once) return;
      } else {
        failures++;
        if (this.ready ? failures >= failuresAllowed : environment.elapsed() - startedAt >= patienceMs) this.#tell(false, problem);
      }
      await environment.sleep(this.ready ? intervalMs : waitMs, signal);
      waitMs = Math.min(waitMs * 2, intervalMs);
    }
  }

  #tell(ready: boolean, problem: string): void {
    if (this.ready === ready && this.problem === problem) return;
    this.ready = ready;
    this.problem = problem;
    this.#options.onChange();
  }
}
