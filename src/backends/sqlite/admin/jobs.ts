import type { StoreProgress } from '../../../state/index.ts';
import { StoreFailure } from '../failures.ts';
import type { RecordPlace } from '../record-codec.ts';

/** What one step of a job tells. */
export interface JobStep extends StoreProgress {
  /** Resources that it gives away, still encoded, where that is its work. */
  readonly rows?: readonly GivenRow[];
}

export interface GivenRow extends RecordPlace {
  readonly record: string;
}

/**
 * A work that is done step by step, so that commits come between: each step takes a few milliseconds. What it yields is how far it
 * is, what it returns is its result. Its `finally` tidies up when it is given up.
 */
export type Job<Value = unknown, Given = undefined> = Generator<JobStep, Value, Given>;

export type StepAnswer = { readonly done: false; readonly step: JobStep } | { readonly done: true; readonly value: unknown };

export type AnyJob = Job | Job<unknown, readonly GivenRow[]>;

/** The jobs of one thread. */
export class Jobs {
  readonly #jobs = new Map<number, AnyJob>();
  #next = 1;

  start(job: AnyJob): number {
    const id = this.#next++;
    this.#jobs.set(id, job);
    return id;
  }

  /** `given`: what the job asked for, where it takes something in. */
  step(id: number, given?: readonly GivenRow[]): StepAnswer {
    const job = this.#jobs.get(id);
    if (job === undefined) throw new StoreFailure({ code: 'Unavailable', message: 'the work was given up: the store was closed' });
    try {
      const { done, value } = (job as Job<unknown, unknown>).next(given);
      if (done !== true) return { done: false, step: value as JobStep };
      this.#jobs.delete(id);
      return { done: true, value };
    } catch (error) {
      this.#jobs.delete(id);
      throw error;
    }
  }

  /** Gives up a job; one that is over, too. */
  end(id: number): void {
    const job = this.#jobs.get(id);
    this.#jobs.delete(id);
    job?.return(undefined);
  }

  endAll(): void {
    for (const id of [...this.#jobs.keys()]) this.end(id);
  }
}
