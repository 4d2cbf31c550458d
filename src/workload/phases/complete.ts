import type { HandlerFunc } from '../types.ts';

/** Remembers that the workload was brought up once; it is never forgotten for this incarnation. */
export const completePhase: HandlerFunc = async (_reconciler, request) => {
  request.status.created = true;
  return true;
};

/** The last phase of a deletion. */
export const deletionCompletePhase: HandlerFunc = async () => true;
