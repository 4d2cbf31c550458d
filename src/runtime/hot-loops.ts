import type { Environment } from '../environment/index.ts';
import type { Pointer } from '../resource/index.ts';
import { keyOf } from './keys.ts';

/** So many runs that wrote without a change of their inputs make a key hot … */
const hotLevel = 100;
/** … and it is hot no more once the level has fallen to this. */
const coolLevel = 50;
/** The level falls by this much a second. */
const leakPerSecond = 2;
/** A hot key runs this long after it was woken, milliseconds. */
const slowedMs = 1_000;
/** What has not run for so long is forgotten, milliseconds. */
const forgottenMs = 10_000;
/** More causes than these are not kept apart: something of the many was a change from outside. */
const maxCauses = 256;

/** A change that woke a key. */
export interface Cause extends Pointer {
  readonly version: string;
}

/** What one run has written. */
export interface WriteLog {
  count: number;
  readonly written: Map<string, string | undefined>;
}

export function newWriteLog(): WriteLog {
  return { count: 0, written: new Map() };
}

interface Suspect {
  level: number;
  /** When the level was right, on elapsed time. */
  at: number;
  hot: boolean;
  /** What the runs of late wrote: resource → version; `undefined`: destroyed, or not known. */
  written: Map<string, string | undefined>;
  causes: Cause[];
  /** Of the present run: something from outside woke it. */
  explained: boolean;
}

/**
 * Finds keys that write again and again without a change of their inputs. A change of what the key's own runs wrote does
 * not count as one, whoever made it (two that fight over an output are a loop too); of the key's own resource only
 * what it wrote itself does not count.
 */
export class HotLoops {
  readonly #environment: Environment;
  /** The one that has not run for longest is first. */
  readonly #suspects = new Map<string, Suspect>();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** A change wakes a key. Answers how long the key has to wait, milliseconds. */
  wake(key: string, cause: Cause | undefined, running: boolean): number {
    const suspect = this.#suspects.get(key);
    if (suspect === undefined) return 0;
    if (cause !== undefined && suspect.causes.length <= maxCauses) suspect.causes.push(cause);
    if (!suspect.hot) return 0;
    // Of what comes while it runs nobody knows yet whether the run itself did it.
    if (running || cause === undefined || !isFromOutside(suspect, key, cause)) return slowedMs;
    return 0;
  }

  start(key: string): void {
    const suspect = this.#suspects.get(key);
    if (suspect === undefined) return;
    suspect.explained = this.#takeCauses(suspect, key);
  }

  /** `becameHot`: it was found just now. `wakeNow`: something from outside came while it ran. */
  end(key: string, log: WriteLog): { readonly becameHot: boolean; readonly wakeNow: boolean } {
    const now = this.#environment.elapsed();
    this.#forgetOld(now);
    const suspect = this.#suspects.get(key);
    if (log.count === 0) {
      this.#suspects.delete(key);
      return { becameHot: false, wakeNow: suspect?.hot === true && suspect.causes.length > 0 };
    }
    if (suspect === undefined) {
      this.#suspects.set(key, { level: 1, at: now, hot: false, written: log.written, causes: [], explained: false });
      return { becameHot: false, wakeNow: false };
    }
    this.#suspects.delete(key);
    this.#suspects.set(key, suspect);
    suspect.written = log.written;
    suspect.level = Math.max(0, suspect.level - ((now - suspect.at) / 1000) * leakPerSecond) + (suspect.explained ? 0 : 1);
    suspect.at = now;
    const wakeNow = suspect.hot && suspect.causes.some((cause) => isFromOutside(suspect, key, cause));
    const becameHot = !suspect.hot && suspect.level >= hotLevel;
    suspect.hot = becameHot || (suspect.hot && suspect.level > coolLevel);
    return { becameHot, wakeNow };
  }

  isHot(key: string): boolean {
    return this.#suspects.get(key)?.hot === true;
  }

  forget(key: string): void {
    this.#suspects.delete(key);
  }

  #takeCauses(suspect: Suspect, key: string): boolean {
    const { causes } = suspect;
    suspect.causes = [];
    return causes.length > maxCauses || causes.some((cause) => isFromOutside(suspect, key, cause));
  }

  #forgetOld(now: number): void {
    for (const [key, { at }] of this.#suspects) {
      if (now - at < forgottenMs) return;
      this.#suspects.delete(key);
    }
  }
}

function isFromOutside(suspect: Suspect, key: string, cause: Cause): boolean {
  const changed = keyOf(cause);
  if (!suspect.written.has(changed)) return true;
  return changed === key && suspect.written.get(changed) !== cause.version;
}
