import { errorCode } from '../resource/index.ts';

/** What says something of the store, and so of every item that is still to come. */
const ofTheStore: ReadonlySet<string> = new Set(['Unavailable', 'Timeout', 'Throttled', 'Unauthenticated', 'Closed', 'NoSpace', 'Corrupt']);

/** Does something for each of them, whatever becomes of the others, as long as the store answers; then throws what failed. */
export async function eachOf<Item>(items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      failures.push(error);
      if (ofTheStore.has(errorCode(error) ?? '')) break;
    }
  }
  throwFailures(failures);
}

/** One failure as it is, several as one; none: nothing is thrown. */
export function throwFailures(failures: readonly unknown[]): void {
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} items failed`);
}
