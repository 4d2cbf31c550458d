import type { Environment } from '../environment/index.ts';

/** Waits for `ended`, but no longer than `ms`; answers whether it has ended. */
export async function within(environment: Environment, ms: number, ended: Promise<unknown>): Promise<boolean> {
  let timer: Disposable | undefined;
  const late = new Promise<false>((resolve) => {
    timer = environment.after(ms, () => resolve(false));
  });
  try {
    return await Promise.race([ended.then(() => true as const), late]);
  } finally {
    timer?.[Symbol.dispose]();
  }
}
