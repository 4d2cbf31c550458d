// A line between a client and a server that delays, goes silent and breaks in the middle of frames, as its seed says.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What a connection suffers; each is drawn anew for every connection.
 *  - `cutAfter`: bytes from the server after which it is cut, from … to, half as many more after each cut: a message that is
 *    larger than what passes at once must get through some time. Absent: it is never cut.
 *  - `halfOpen`: share of the cuts before which nothing passes for `halfOpenMs` (100), as on a line that died unnoticed.
 *  - `delayMs`: each piece waits up to this long; their order stays.
 * @typedef {{ readonly cutAfter?: readonly [number, number], readonly halfOpen?: number, readonly halfOpenMs?: number, readonly delayMs?: number }} Faults
 */

/**
 * Numbers in [0, 1) that a seed decides.
 * @param {number} seed
 * @returns {() => number}
 */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** @param {string} address @returns {import('node:net').Socket} */
function dial(address) {
  return address.startsWith('unix:') ? connect(address.slice('unix:'.length)) : connect(Number(address.split(':')[1]), '127.0.0.1');
}

export class CuttingProxy {
  /** Where the client connects: `unix:/abs` or `127.0.0.1:port`. */
  address = '';
  cuts = 0;
  #listener;
  #target;
  #faults;
  #random;
  /** @type {Set<readonly [import('node:net').Socket, import('node:net').Socket]>} */
  #pairs = new Set();
  /** @type {Set<Promise<void>>} */
  #running = new Set();

  /**
   * `target`, `listen`: `unix:/abs` or `127.0.0.1:port`.
   * @param {string} target @param {string} listen @param {number} seed @param {Faults} faults
   * @returns {Promise<CuttingProxy>}
   */
  static async between(target, listen, seed, faults) {
    const proxy = new CuttingProxy(target, seed, faults);
    if (listen.startsWith('unix:')) proxy.#listener.listen(listen.slice('unix:'.length));
    else proxy.#listener.listen(Number(listen.split(':')[1]), '127.0.0.1');
    await once(proxy.#listener, 'listening');
    const bound = proxy.#listener.address();
    proxy.address = typeof bound === 'string' ? `unix:${bound}` : `127.0.0.1:${bound?.port}`;
    return proxy;
  }

  /** @param {string} target @param {number} seed @param {Faults} faults */
  constructor(target, seed, faults) {
    this.#target = target;
    this.#faults = faults;
    this.#random = seeded(seed);
    this.#listener = createServer((client) => this.#accept(client));
  }

  /** Cuts every connection now. @returns {void} */
  cut() {
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** @returns {Promise<void>} */
  async close() {
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    this.cut();
    await Promise.all(this.#running);
    await closed;
  }

  /** @param {import('node:net').Socket} client @returns {void} */
  #accept(client) {
    const { cutAfter, halfOpen = 0 } = this.#faults;
    const server = dial(this.#target);
    /** @type {readonly [import('node:net').Socket, import('node:net').Socket]} */
    const pair = [client, server];
    this.#pairs.add(pair);
    const share = this.#random();
    const left =
      cutAfter === undefined
        ? Number.POSITIVE_INFINITY
        : Math.round((cutAfter[0] + share * (cutAfter[1] - cutAfter[0])) * 1.5 ** this.cuts);
    const silent = this.#random() < halfOpen;
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => this.#end(pair));
    }
    this.#run(this.#forward(client, server, Number.POSITIVE_INFINITY, pair, false));
    this.#run(this.#forward(server, client, left, pair, silent));
  }

  /** @param {Promise<void>} task @returns {void} */
  #run(task) {
    this.#running.add(task);
    void task.finally(() => this.#running.delete(task));
  }

  async #forward(from, to, bytes, pair, silent) {
    const { delayMs = 0, halfOpenMs = 100 } = this.#faults;
    let left = bytes;
    try {
      for await (const chunk of from) {
        if (delayMs > 0) await sleep(Math.floor(this.#random() * (delayMs + 1)));
        const part = chunk.subarray(0, left);
        left -= part.length;
        if (!to.write(part) && !to.destroyed) await Promise.race([once(to, 'drain'), once(to, 'close')]);
        if (left > 0) continue;
        this.cuts++;
        if (silent) await sleep(halfOpenMs);
        return this.#end(pair);
      }
    } catch {
      // One end broke by itself: so does the other.
    }
    this.#end(pair);
  }

  #end(pair) {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}
