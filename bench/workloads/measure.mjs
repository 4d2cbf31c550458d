// @ts-check
/** What the parts of one workload took. */
export class Measures {
  /** @type {Record<string, { operations: number, nanoseconds: number, cpuNanoseconds: number, bytes?: number }>} */
  parts = {};

  /**
   * Measures one part. What the parts before left behind is collected first, and given back, so that each pays for its own.
   * @param {string} name
   * @param {number} operations
   * @param {() => void | Promise<void>} part
   */
  async time(name, operations, part) {
    await settle();
    const cpu = process.cpuUsage();
    const start = process.hrtime.bigint();
    await part();
    const nanoseconds = Number(process.hrtime.bigint() - start);
    const { user, system } = process.cpuUsage(cpu);
    this.parts[name] = { operations, nanoseconds, cpuNanoseconds: (user + system) * 1000 };
  }

  /**
   * One wait that was measured elsewhere.
   * @param {string} name
   * @param {number} nanoseconds
   */
  note(name, nanoseconds) {
    this.parts[name] = { operations: 1, nanoseconds, cpuNanoseconds: 0 };
  }
}

export function collect() {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  globalThis.gc();
}

/**
 * Collects, and waits until the engine's threads have swept: they go on after the call, where the collection of the peer in Go
 * returns when that is done.
 */
async function settle() {
  collect();
  for (let waits = 0; waits < 100; waits++) {
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { user, system } = process.cpuUsage(before);
    if (user + system < 2_000) return;
  }
}

/** What is in use after a collection, the engine's own memory and that of buffers. */
export function heapBytes() {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * @param {unknown} condition
 * @param {string} otherwise
 * @returns {asserts condition}
 */
export function check(condition, otherwise) {
  if (!condition) throw new Error(otherwise);
}
