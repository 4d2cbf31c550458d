import type { StoreTaskOptions } from '../../state/index.ts';
import type { GivenRow, JobStep, StepAnswer } from './admin/jobs.ts';
import type { JobRequest } from './admin/start-job.ts';
import type { StoreWorker } from './store-worker.ts';

/** Drives a job of the thread step by step; commits come between. Rejects with the signal's reason when it is given up. */
export async function runJob<Value>(
  worker: StoreWorker,
  request: JobRequest,
  options: StoreTaskOptions & {
    /** Between two steps; what it answers goes into the next. */
    readonly between?: (step: JobStep) => Promise<readonly GivenRow[] | void> | void;
  },
): Promise<Value> {
  const { signal, onProgress, between } = options;
  signal?.throwIfAborted();
  const job = await worker.call<number>({ call: 'start', job: request });
  let over = false;
  let rows: readonly GivenRow[] | undefined;
  try {
    for (;;) {
      const answer = await worker.call<StepAnswer>({ call: 'step', job, ...(rows && { rows }) });
      over = answer.done;
      if (answer.done) return answer.value as Value;
      onProgress?.({ step: answer.step.step, done: answer.step.done, total: answer.step.total });
      rows = (await between?.(answer.step)) ?? undefined;
      signal?.throwIfAborted();
    }
  } finally {
    // A thread that has ended has given up its jobs.
    if (!over) await worker.call({ call: 'end', job }).catch(() => {});
  }
}
