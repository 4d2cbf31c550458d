import { sameValue } from '../resource/index.ts';
import { childKey } from './identity.ts';
import type { Desired, Live } from './port.ts';

interface Written {
  readonly uid: string;
  readonly version: string;
  readonly digest: string;
}

/**
 * What is remembered of a workload's children between reconciles, to spare digests, comparisons and needless writes. It can be
 * lost at any time.
 */
export class ChildMemory {
  #desired = new Map<string, Desired>();
  readonly #written = new Map<string, Written>();

  /**
   * The same children, as the objects of the last time where they say the same, so that what is remembered per object (their
   * digests) is found again.
   */
  intern(children: readonly Desired[]): readonly Desired[] {
    const next = new Map<string, Desired>();
    const interned = children.map((child) => {
      const key = childKey(child.ref);
      const before = this.#desired.get(key);
      const kept = before !== undefined && sameValue(before, child) ? before : child;
      next.set(key, kept);
      return kept;
    });
    this.#desired = next;
    for (const key of this.#written.keys()) if (!next.has(key)) this.#written.delete(key);
    return interned;
  }

  /** Notes what the store made of a desired child. */
  wrote(child: Desired, digest: string, live: Live): void {
    this.#written.set(childKey(child.ref), { uid: live.uid, version: live.version, digest });
  }

  /**
   * Whether a live child is what the store made of this very desired state. Some stores put in defaults or drop what they
   * do not know, so that the two never compare equal: asking once more would not change that.
   */
  isWritten(child: Desired, digest: string, live: Live): boolean {
    const written = this.#written.get(childKey(child.ref));
    return written !== undefined && written.uid === live.uid && written.version === live.version && written.digest === digest;
  }

  /** Forgets what was written: everything is compared again. */
  forget(): void {
    this.#written.clear();
  }
}
