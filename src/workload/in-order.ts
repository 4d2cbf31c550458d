import { childName } from './identity.ts';
import type { Desired } from './port.ts';

/** How many children are handled at once when `dependsOn` orders them. */
export const childConcurrency = 8;

/** Handles every item, a few at once, in their order. */
export async function inPool<Item>(items: readonly Item[], handle: (item: Item) => Promise<void>): Promise<void> {
  // All lanes draw from one iterator.
  const queue = items.values();
  const lane = async (): Promise<void> => {
    for (const item of queue) await handle(item);
  };
  await Promise.all(Array.from({ length: Math.min(childConcurrency, items.length) }, lane));
}

/** Whether children say what they depend on, so that the given order does not count. */
export function ordersByDependency(children: readonly Desired[]): boolean {
  return children.some((child) => child.dependsOn !== undefined);
}

/**
 * Handles every child once: one after another in the given order, or, when `dependsOn` orders them, each as soon as what
 * it depends on was handled, several at once. `handle` gets the names of those that come before. The first rejection is
 * the answer; nothing is started after it.
 */
export async function inOrder(
  children: readonly Desired[],
  handle: (child: Desired, predecessors: readonly string[]) => Promise<void>,
): Promise<void> {
  if (ordersByDependency(children)) return byDependency(children, handle);
  const before: string[] = [];
  for (const child of children) {
    await handle(child, before);
    before.push(childName(child));
  }
}

function byDependency(
  children: readonly Desired[],
  handle: (child: Desired, predecessors: readonly string[]) => Promise<void>,
): Promise<void> {
  const followers = new Map<string, Desired[]>();
  const missing = new Map<Desired, number>();
  for (const child of children) {
    const predecessors = new Set(child.dependsOn ?? []);
    missing.set(child, predecessors.size);
    for (const name of predecessors) {
      const list = followers.get(name);
      if (list === undefined) followers.set(name, [child]);
      else list.push(child);
    }
  }
  const free = children.filter((child) => missing.get(child) === 0);
  return new Promise((resolve, reject) => {
    let running = 0;
    let failed = false;
    const start = (): void => {
      while (!failed && running < childConcurrency) {
        const child = free.shift();
        if (child === undefined) break;
        running++;
        handle(child, child.dependsOn ?? []).then(
          () => handled(child),
          (error: unknown) => {
            failed = true;
            reject(error);
          },
        );
      }
      if (running === 0) resolve();
    };
    const handled = (child: Desired): void => {
      running--;
      for (const follower of followers.get(childName(child)) ?? []) {
        const left = (missing.get(follower) ?? 0) - 1;
        missing.set(follower, left);
        if (left === 0) free.push(follower);
      }
      start();
    };
    start();
  });
}
