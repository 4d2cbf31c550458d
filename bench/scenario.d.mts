/** One side of a comparison. */
export interface Side<Context = unknown> {
  /** What is measured, in a few words: `memory store`, `a bare Map`. */
  readonly name: string;
  /** Not timed; its answer is handed to `run` and `clean`. */
  prepare?(): Context | Promise<Context>;
  /**
   * Timed. Answers how many operations it did, having checked that they did what they should: it throws when they did not.
   * It may answer the time that counts too (milliseconds), when only a part of it does.
   */
  run(context: Context): Answer | Promise<Answer>;
  /** Not timed. Contexts are each side's own: the methods of `Side` take whatever their `prepare` gave. */
  clean?(context: Context): void | PromiseLike<void>;
}

export type Answer = number | { readonly operations: number; readonly elapsedMs: number };

export interface Scenario {
  /** Unique among all, for `--only`: `mem-get`. */
  readonly name: string;
  readonly ours: Side;
  /** The program or the bare data structure that ours is compared with, run in turn with it. */
  readonly peer?: Side;
  /** @default 5 */
  readonly rounds?: number;
}
