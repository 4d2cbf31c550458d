import type { EventSource } from './event-source.ts';
import type { StateEvent } from './events.ts';
import type { AggregatedWatch } from './watch.ts';

/** The events of a `watchNamespaces` about those namespaces alone that a rule allows; it is asked for each as it comes. */
export function allowedNamespaces(watch: AggregatedWatch, isAllowed: (namespace: string) => Promise<boolean>): EventSource {
  const iterator = watch[Symbol.asyncIterator]();
  const told = new Set<string>();
  let queue: StateEvent[] = [];
  let callbacks: (() => void)[] = [];
  let pulling = false;
  let ended = false;

  const wake = (): void => {
    const waiting = callbacks;
    callbacks = [];
    for (const callback of waiting) callback();
  };
  const isTold = async (event: StateEvent): Promise<boolean> => {
    if (event.type !== 'created' && event.type !== 'destroyed') return true;
    const { id } = event.resource.metadata;
    if (event.type === 'destroyed') return told.delete(id);
    if (!(await isAllowed(id))) return false;
    told.add(id);
    return true;
  };
  /** Only while the reader waits, so that one who does not read costs nothing here. */
  const pull = async (): Promise<void> => {
    pulling = true;
    while (!ended && queue.length === 0) {
      const { done, value } = await iterator.next();
      if (done === true) ended = true;
      else for (const event of value) if (await isTold(event)) queue.push(event);
    }
    pulling = false;
    wake();
  };

  return {
    take(max) {
      const taken = queue.slice(0, max);
      queue = queue.slice(max);
      return taken;
    },
    whenReady(callback) {
      if (ended || queue.length > 0) return callback();
      callbacks.push(callback);
      if (!pulling) void pull();
    },
    get ended() {
      return ended;
    },
    close() {
      ended = true;
      queue = [];
      void iterator.return?.();
      wake();
    },
  };
}
