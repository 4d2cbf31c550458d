import type { Environment } from '../environment/index.ts';
import type { Capabilities, CoreState } from '../state/index.ts';
import { createRows } from './conformance/create-rows.ts';
import { helperRows } from './conformance/helper-rows.ts';
import type { ConformanceRow, RowTools } from './conformance/tools.ts';
import { rowTools } from './conformance/tools.ts';
import { watchRows } from './conformance/watch-rows.ts';
import { writeRows } from './conformance/write-rows.ts';

export interface ConformanceStore extends AsyncDisposable {
  readonly state: CoreState;
}

/** One check: `run` makes a fresh store, and rejects with what was expected and found. */
export interface ConformanceCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/**
 * Every rule that a store must keep, as cases for any test runner. `makeStore` gives a fresh, empty store each time; the
 * capabilities say which of the finer promises it makes, and it is held to them.
 */
export function stateConformance(
  makeStore: () => Promise<ConformanceStore>,
  options: { readonly environment: Environment; readonly capabilities: Capabilities },
): readonly ConformanceCase[] {
  const rows: readonly ConformanceRow[] = [...createRows, ...writeRows, ...watchRows, ...helperRows];
  return rows
    .filter((row) => row.needs === undefined || options.capabilities[row.needs])
    .map(({ name, run }) => ({
      name,
      async run() {
        await using store = await makeStore();
        for (const flag of Object.keys(options.capabilities) as (keyof Capabilities)[]) {
          if (store.state.capabilities[flag] !== options.capabilities[flag])
            throw new Error(`the store says ${flag}: ${store.state.capabilities[flag]}, expected ${options.capabilities[flag]}`);
        }
        const tools: RowTools = rowTools(store.state, options.environment);
        await run(tools);
      },
    }));
}
