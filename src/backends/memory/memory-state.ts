import type { Environment } from '../../environment/index.ts';
import type { CoreState } from '../../state/index.ts';
import { Broker } from '../broker/index.ts';

export interface MemoryStateOptions {
  readonly environment: Environment;
  /** Commits of a kind that are kept for bookmarks and tails, at least. @default 4096 */
  readonly historySize?: number;
  /** Entries that all lagging watchers together may hold. @default 1_000_000 */
  readonly pendingLimit?: number;
  /** Idle kind watches get a fresh bookmark this often, milliseconds. @default 10_000 */
  readonly idleBookmarkMs?: number;
}

export interface MemoryState extends CoreState, AsyncDisposable {
  /** Names the store, for its bookmarks. */
  readonly storeId: string;
  /** The newest revision that readers see. */
  readonly revision: number;
}

/** A store in memory: nothing survives it. */
export function memoryState(options: MemoryStateOptions): MemoryState {
  const { environment } = options;
  return new Broker({
    ...options,
    storeId: environment.id(),
    capabilities: { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false },
  });
}
