import type { Environment } from '../../environment/index.ts';
import type { Capabilities, CoreState } from '../../state/index.ts';

/** What a case asks of the store that is made for it. */
export interface StoreRequest {
  /**
   * Keep only about this many commits of a kind, so that a slow watcher is coalesced and a bookmark expires within a case.
   * A store that cannot choose ignores it, and says so by `shortHistory: false`.
   */
  readonly historySize?: number;
  /** Entries that all lagging watchers together may hold. */
  readonly pendingLimit?: number;
}

/** A fresh, empty store for one case; disposed after it. */
export interface StoreUnderTest extends AsyncDisposable {
  readonly core: CoreState;
  /** Closes the store and opens it again on the same data. Needed when the store claims `durableBookmarks`. */
  reopen?(): Promise<CoreState>;
  /**
   * Ends the store as a crash would – at once, whatever is on its way – and opens it again on what is left. Calls that are on their
   * way then may fail or never end. Needed when the suite is told `crashes`.
   */
  crash?(): Promise<CoreState>;
}

export type MakeStore = (request: StoreRequest) => StoreUnderTest | Promise<StoreUnderTest>;

/** Makes a store that can neither be opened again nor crashed: it is given as it is. */
export type MakeCore = (request: StoreRequest) => (CoreState & AsyncDisposable) | Promise<CoreState & AsyncDisposable>;

export interface StateConformanceOptions {
  /** The one that the stores use: nothing may stay open in it. @default one of Node, for the suite's own waiting */
  readonly environment?: Environment;
  /** What the store claims; the suite checks that this is true, and leaves out the cases of what is not claimed. */
  readonly capabilities: Capabilities;
  /** Whether the store honours `historySize` and `pendingLimit`, so that lag and expiry must be seen, not just may. @default false */
  readonly shortHistory?: boolean;
  /** Whether the stores can be crashed (`crash`): then it is seen that nothing comes back, and nothing is lost (K4). @default false */
  readonly crashes?: boolean;
  /** How many random runs each generated case with crashes makes. @default 5 */
  readonly crashRuns?: number;
  /** How long a case waits for one event before it fails, milliseconds. @default 5000 */
  readonly limitMs?: number;
  /** How many random runs a generated case makes. @default 25 */
  readonly runs?: number;
  /** Seed of the generated cases; given back in their failures. @default by chance of fast-check */
  readonly seed?: number;
}

/** The options with what was left out, and stores of one form. */
export interface Suite {
  readonly environment: Environment;
  readonly options: StateConformanceOptions;
  makeStore(request: StoreRequest): Promise<StoreUnderTest>;
}

/** One case: give `name` and `run` to the test runner of your choice. `run` rejects when the store is at fault. */
export interface ConformanceCase {
  /** `group: rule`, unique. */
  readonly name: string;
  run(): Promise<void>;
}
