/** One side of a comparison. */
export interface Side<Context = unknown> {
  /** What is measured, in a few words: `memory store`, `a bare Map`. */
  readonly name: string;
  /** Not timed; its answer is handed to `run` and `clean`. */
  prepare?(): Context | Promise<Context>;
  /**
   * Timed. Answers how many operations it did, having checked that they did what they should: it throws when they did not.
   * It may answer the time that counts too, when only a part of it does, or several parts at once.
   */
  run(context: Context): Answer | Promise<Answer>;
  /** Not timed. Contexts are each side's own: the methods of `Side` take whatever their `prepare` gave. */
  clean?(context: Context): void | PromiseLike<void>;
}

export type Answer = number | Timed | Parts;

/** A part of a scenario that was timed. */
export interface Timed {
  readonly operations: number;
  readonly elapsedMs: number;
  /** User and system time of the process. Where both sides tell it, the table has a ratio by it too. */
  readonly cpuMs?: number;
}

/** A part whose outcome is a size, not a time: less is better. */
export interface Sized {
  readonly bytes: number;
}

/** A line of the table each; only parts that both sides have are compared. */
export interface Parts {
  readonly parts: Readonly<Record<string, Timed | Sized>>;
}

export interface Scenario {
  /** Unique among all, for `--only`: `mem-get`. */
  readonly name: string;
  readonly ours: Side;
  /** The program or the bare data structure that ours is compared with, run in turn with it. */
  readonly peer?: Side;
  /** @default 5 */
  readonly rounds?: number;
  /** Whether a round goes before that does not count; needless where each round is a process of its own. @default true */
  readonly warmUp?: boolean;
  /** Runs only with `--full`: it takes minutes, or gigabytes. @default false */
  readonly full?: boolean;
  /** Why it cannot run on this machine; `undefined`: it can. */
  missing?(): string | undefined;
}
