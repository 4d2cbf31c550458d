import type { Environment, Logger } from '../environment/index.ts';
import type { Pointer } from '../resource/index.ts';
import { pointerText, thrownText } from '../resource/index.ts';
import { pointerOfKey } from './keys.ts';
import type { KeyStatus } from './runtime.ts';

/** An unchanged failure is logged again after this long, milliseconds. */
const logAgainMs = 60_000;

/** What there is to tell of one key. */
export interface KeyRecord {
  readonly pointer: Pointer;
  running: boolean;
  /** Consecutive failures. */
  failures: number;
  lastError: string | undefined;
  /** Wall clock, when the present row of failures began. */
  failingSince: string | undefined;
  /** What it waits for, and since when. */
  blockedBecause: string | undefined;
  blockedSince: string | undefined;
  loggedAt: number;
}

/** Keeps a record of each key that runs, waits or fails, and of no other. */
export class KeyRecords {
  readonly #environment: Environment;
  readonly #log: Logger;
  readonly #records = new Map<string, KeyRecord>();
  /** Resources that went, until their last run is over: what that one waits for is nobody's any more. */
  readonly #gone = new Set<string>();

  constructor(environment: Environment, log: Logger) {
    this.#environment = environment;
    this.#log = log;
  }

  running(): readonly string[] {
    return [...this.#records.values()].filter((record) => record.running).map((record) => pointerText(record.pointer));
  }

  isRunning(key: string): boolean {
    return this.#records.get(key)?.running === true;
  }

  start(key: string): KeyRecord {
    let record = this.#records.get(key);
    if (record === undefined) {
      record = {
        pointer: Object.freeze(pointerOfKey(key)),
        running: true,
        failures: 0,
        lastError: undefined,
        failingSince: undefined,
        blockedBecause: undefined,
        blockedSince: undefined,
        loggedAt: Number.NEGATIVE_INFINITY,
      };
      this.#records.set(key, record);
    }
    record.running = true;
    return record;
  }

  /** `again`: it runs again by itself. `hot`: it is slowed down, whether what wakes it next has come by now or not. */
  end(key: string, { again, hot }: { readonly again: boolean; readonly hot: boolean }): void {
    const gone = this.#gone.has(key);
    if (!again) this.#gone.delete(key);
    const record = this.#records.get(key);
    if (record === undefined) return;
    record.running = false;
    if (record.failures === 0 && (gone || (record.blockedBecause === undefined && !hot)) && !again) this.#records.delete(key);
  }

  succeeded(record: KeyRecord, blockedBecause?: string): void {
    record.failures = 0;
    record.lastError = undefined;
    record.failingSince = undefined;
    // In other words it is still blocked: since when stays.
    record.blockedSince = blockedBecause === undefined ? undefined : (record.blockedSince ?? this.#environment.timestamp());
    record.blockedBecause = blockedBecause;
    record.loggedAt = Number.NEGATIVE_INFINITY;
  }

  /** Events may run a failing key very often: what is new is logged, and else less and less often. */
  failed(record: KeyRecord, error: unknown): void {
    const text = thrownText(error);
    const now = this.#environment.elapsed();
    record.failures++;
    record.blockedBecause = undefined;
    record.blockedSince = undefined;
    record.failingSince ??= this.#environment.timestamp();
    const isPowerOfTwo = (record.failures & (record.failures - 1)) === 0;
    if (text !== record.lastError || isPowerOfTwo || now - record.loggedAt >= logAgainMs) {
      record.loggedAt = now;
      this.#log.log('warn', `reconciling ${pointerText(record.pointer)} failed`, { error, failures: record.failures });
    }
    record.lastError = text;
  }

  /** It is there, perhaps once more. */
  isThere(key: string): void {
    this.#gone.delete(key);
  }

  /** Another incarnation starts without the failures of the one before. */
  forget(key: string): void {
    this.#gone.add(key);
    const record = this.#records.get(key);
    if (record === undefined) return;
    this.succeeded(record);
    if (!record.running) this.#records.delete(key);
  }

  status(dueInMs: (key: string) => number | undefined, isHot: (key: string) => boolean): readonly KeyStatus[] {
    const keys: KeyStatus[] = [];
    for (const [key, record] of this.#records) {
      const { pointer, running, failures, lastError, failingSince, blockedBecause, blockedSince } = record;
      const nextRunInMs = dueInMs(key);
      // It was to run later, and did so, or is about to.
      if (!running && failures === 0 && nextRunInMs === undefined && blockedBecause === undefined && !isHot(key)) continue;
      keys.push({
        pointer,
        running,
        failures,
        ...(lastError !== undefined && { lastError }),
        ...(failingSince !== undefined && { failingSince }),
        ...(blockedBecause !== undefined && { blockedBecause }),
        ...(blockedSince !== undefined && { blockedSince }),
        ...(nextRunInMs !== undefined && { nextRunInMs }),
        ...(isHot(key) && { slowedDown: true }),
      });
    }
    return keys;
  }
}
